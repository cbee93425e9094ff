SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.state IN (CAST(:v1 AS CHAR(2000))) OR pas.state IS NULL)
