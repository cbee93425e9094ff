SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE id IN (:v0)
 FETCH FIRST :row_limit ROWS ONLY
