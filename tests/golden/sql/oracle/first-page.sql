SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE began IS NOT NULL ORDER BY began DESC, id DESC
 FETCH FIRST :row_limit ROWS ONLY
