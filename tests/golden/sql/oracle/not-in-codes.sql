SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE (state NOT IN (CAST(:v0 AS CHAR(2000)), CAST(:v1 AS CHAR(2000))))
