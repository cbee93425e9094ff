SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE (patients.year < :v1 OR patients.year < :v2 AND patients.year NOT IN (:v3))
