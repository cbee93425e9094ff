SELECT count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE pas.state IN (CAST(:state_1 AS CHAR(2000))) OR pas.state IS NULL
