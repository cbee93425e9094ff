SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.id IN (:v1)
FETCH FIRST :v2 ROWS ONLY
