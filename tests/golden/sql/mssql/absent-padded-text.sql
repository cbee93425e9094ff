SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.padded COLLATE Latin1_General_100_BIN2) NOT IN (?, ?, ?)
