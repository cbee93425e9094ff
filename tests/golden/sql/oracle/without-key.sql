SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE began IS NULL AND (id < :v0) ORDER BY id DESC
 FETCH FIRST :row_limit ROWS ONLY
