SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE (patients.birth >= :v1 OR patients.birth IN (:v2, :v3, :v4, :v5, :v6, :v7, :v8))
