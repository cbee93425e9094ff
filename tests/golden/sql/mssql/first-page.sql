SELECT TOP (?) pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.began IS NOT NULL
ORDER BY pas.began DESC, pas.id DESC
