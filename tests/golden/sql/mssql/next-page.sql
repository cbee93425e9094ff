SELECT TOP (?) pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.began <= CAST(? AS DATETIME) AND (pas.began < CAST(? AS DATETIME) OR pas.id < ?) AND pas.state IN (?) AND (pas.state COLLATE Latin1_General_100_BIN2) IN (?)
ORDER BY pas.began DESC, pas.id DESC
