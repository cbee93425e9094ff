SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE ((state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?))
