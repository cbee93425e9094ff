SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.began >= CAST(:v1 AS DATE)
ORDER BY pas.began ASC, pas.id ASC
FETCH FIRST :v2 ROWS ONLY
