SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE began >= ? ORDER BY began ASC, id ASC
 LIMIT ? OFFSET ?
