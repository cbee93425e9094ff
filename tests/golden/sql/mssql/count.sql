SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.state IN (?) AND (pas.state COLLATE Latin1_General_100_BIN2) IN (?) OR pas.state IS NULL)
