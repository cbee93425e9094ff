SELECT TOP (?) pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.patient IN (?)
ORDER BY CASE WHEN pas.began IS NULL THEN 1 ELSE 0 END, pas.began DESC, pas.id DESC
