SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE began >= %(v0)s ORDER BY began ASC, id ASC 
 LIMIT %(row_limit)s::INTEGER
