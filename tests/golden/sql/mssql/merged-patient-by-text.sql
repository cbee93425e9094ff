SELECT pas.id, pas.patient, pas.state, pas.began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE CAST(pas.patient AS VARCHAR(64)) IN (CAST(? AS VARCHAR(64)), (SELECT TOP 1 patients.survivor COLLATE Latin1_General_100_BIN2 AS anon_1 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS patients 
WHERE patients.code IN (?) AND (patients.code COLLATE Latin1_General_100_BIN2) IN (?) AND ((patients.survivor COLLATE Latin1_General_100_BIN2) NOT IN (?))))
