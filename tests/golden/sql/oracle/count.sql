SELECT count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE state IN (CAST(:v0 AS CHAR(2000))) OR state IS NULL
