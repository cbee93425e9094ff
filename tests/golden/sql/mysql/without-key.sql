SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE began IS NULL AND (id < %(v0)s) ORDER BY id DESC 
 LIMIT %(row_limit)s
