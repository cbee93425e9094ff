SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE ((patients.birth COLLATE Latin1_General_100_BIN2) >= ? AND (patients.birth COLLATE Latin1_General_100_BIN2) NOT IN (?) OR patients.birth IN (?, ?, ?, ?, ?, ?, ?) AND (patients.birth COLLATE Latin1_General_100_BIN2) IN (?, ?, ?, ?, ?, ?, ?))
