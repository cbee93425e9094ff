SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.patient IN (:v1)
ORDER BY CASE WHEN pas.began IS NULL THEN 1 ELSE 0 END, pas.began DESC, pas.id DESC
FETCH FIRST :v2 ROWS ONLY
