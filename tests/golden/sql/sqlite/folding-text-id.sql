SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE name COLLATE "BINARY" > ? ORDER BY name COLLATE "BINARY" ASC
 LIMIT ? OFFSET ?
