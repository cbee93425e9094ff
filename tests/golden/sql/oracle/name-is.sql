SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.name IN (:v1)
