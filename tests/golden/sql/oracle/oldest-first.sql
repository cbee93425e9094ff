SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE began >= CAST(:v0 AS DATE) ORDER BY began ASC, id ASC
 FETCH FIRST :row_limit ROWS ONLY
