SELECT TOP (?) pas.written
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.written COLLATE Latin1_General_100_BIN2) NOT IN (?, ?, ?, ?)
ORDER BY pas.id DESC
