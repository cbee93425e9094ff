SELECT TOP (?) pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.written COLLATE Latin1_General_100_BIN2) >= ? AND (pas.written COLLATE Latin1_General_100_BIN2) NOT IN (?, ?, ?, ?) AND (pas.written COLLATE Latin1_General_100_BIN2) < ? AND (pas.written COLLATE Latin1_General_100_BIN2) NOT IN (?, ?, ?, ?)
ORDER BY pas.began DESC, pas.id DESC
