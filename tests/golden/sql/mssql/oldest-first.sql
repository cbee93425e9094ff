SELECT TOP (?) pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.began >= CAST(? AS DATETIME)
ORDER BY pas.began ASC, pas.id ASC
