SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE (began <= CAST(:v0 AS DATE)) AND ((began < CAST(:v1 AS DATE)) OR (id < :v2)) AND state IN (CAST(:v3 AS CHAR(2000))) ORDER BY began DESC, id DESC
 FETCH FIRST :row_limit ROWS ONLY
