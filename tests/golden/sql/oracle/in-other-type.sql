SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE CAST(colour AS CLOB) IN (:v0) AND (CAST(colour AS CLOB) NOT IN (:v1))
