SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE id > :v0 ORDER BY id ASC
 FETCH FIRST :row_limit ROWS ONLY
