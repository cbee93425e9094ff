SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE began IS NOT NULL ORDER BY began DESC, id DESC 
 LIMIT %(row_limit)s::INTEGER
