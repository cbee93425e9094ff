SELECT patients.id, patients.merged
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.id IN (?, ?) AND patients.merged IS NOT NULL
UNION ALL SELECT patients.id, patients.merged
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.merged IN (?, ?) AND patients.merged IS NOT NULL
