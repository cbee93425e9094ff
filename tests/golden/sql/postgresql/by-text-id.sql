SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE id > %(v0)s ORDER BY id ASC 
 LIMIT %(row_limit)s::INTEGER
