SELECT TOP (?) id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE name COLLATE Latin1_General_100_BIN2 > ? ORDER BY name COLLATE Latin1_General_100_BIN2 ASC
