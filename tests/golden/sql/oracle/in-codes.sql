SELECT pas.id, pas.patient, pas.state, pas.began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE pas.state IN (CAST(:state_1 AS CHAR(2000)), CAST(:state_2 AS CHAR(2000)))
