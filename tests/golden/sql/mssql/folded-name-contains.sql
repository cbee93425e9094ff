SELECT patients.id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS patients 
WHERE (' ' + lower(patients.name)) LIKE ? ESCAPE '!'
