SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.birth >= :v1 AND patients.birth < :v2 AND patients.birth NOT IN (:v3, :v4, :v5, :v6, :v7, :v8, :v9)
