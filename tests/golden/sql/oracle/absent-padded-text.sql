SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.padded NOT IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000)))
