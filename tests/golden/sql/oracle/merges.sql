SELECT patients.id, patients.merged
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.id IN (:v1, :v2) AND patients.merged IS NOT NULL
UNION ALL SELECT patients.id, patients.merged
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.merged IN (:v3, :v4) AND patients.merged IS NOT NULL
