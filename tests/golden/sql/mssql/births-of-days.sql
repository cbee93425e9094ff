SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.born >= CAST(? AS DATETIME) AND patients.born < CAST(? AS DATETIME)
