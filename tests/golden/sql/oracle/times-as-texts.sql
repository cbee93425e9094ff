SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.written >= :v1 AND pas.written NOT IN (:v2, :v3, :v4) AND pas.written < :v5 AND pas.written NOT IN (:v6, :v7, :v8)
ORDER BY pas.began DESC, pas.id DESC
FETCH FIRST :v9 ROWS ONLY
