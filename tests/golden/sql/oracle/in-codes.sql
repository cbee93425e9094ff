SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE state IN (CAST(:v0 AS CHAR(2000)), CAST(:v1 AS CHAR(2000)))
