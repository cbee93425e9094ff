SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE (patients.year < ? OR patients.year < ? AND patients.year NOT IN (?))
