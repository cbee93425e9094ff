SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.began <= CAST(:v1 AS DATE) AND (pas.began < CAST(:v2 AS DATE) OR pas.id < :v3) AND pas.state IN (CAST(:v4 AS CHAR(2000)))
ORDER BY pas.began DESC, pas.id DESC
FETCH FIRST :v5 ROWS ONLY
