SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.written IS NULL OR pas.written IN (?, ?, ?, ?) AND (pas.written COLLATE Latin1_General_100_BIN2) IN (?, ?, ?, ?))
