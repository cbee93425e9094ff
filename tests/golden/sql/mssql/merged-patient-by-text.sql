SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE CAST(patient AS VARCHAR(64)) IN (CAST(? AS VARCHAR(64)), (SELECT TOP 1 merged COLLATE Latin1_General_100_BIN2 AS anon_1 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (?) AND (id COLLATE Latin1_General_100_BIN2) IN (?) AND merged IS NOT NULL))
