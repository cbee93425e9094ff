SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE name IN (?) AND (name COLLATE Latin1_General_100_BIN2) IN (?)
