SELECT TOP (?) pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.name COLLATE Latin1_General_100_BIN2) > ?
ORDER BY (pas.name COLLATE Latin1_General_100_BIN2) ASC
