SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (SELECT patient 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (?) AND (digits COLLATE Latin1_General_100_BIN2) IN (?)) AND (id COLLATE Latin1_General_100_BIN2) IN (SELECT patient COLLATE Latin1_General_100_BIN2 AS anon_1 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (?) AND (digits COLLATE Latin1_General_100_BIN2) IN (?))
