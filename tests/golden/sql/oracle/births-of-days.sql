SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.born >= CAST(:v1 AS DATE) AND patients.born < CAST(:v2 AS DATE)
