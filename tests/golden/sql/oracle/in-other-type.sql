SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE CAST(pas.colour AS VARCHAR2(4000)) IN (:v1)
