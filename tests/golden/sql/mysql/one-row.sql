SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE id IN (%(v0)s) 
 LIMIT %(row_limit)s
