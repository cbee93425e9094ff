SELECT patients.code, patients.survivor 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS patients 
WHERE patients.survivor IN (?) AND (patients.survivor COLLATE Latin1_General_100_BIN2) IN (?) AND ((patients.survivor COLLATE Latin1_General_100_BIN2) NOT IN (?))
