SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE name > :v0 ORDER BY name ASC
 FETCH FIRST :row_limit ROWS ONLY
