SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.state IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000)))
