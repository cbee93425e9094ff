SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.id IN (SELECT items.patient
FROM (SELECT patient, digits FROM numbers
) items
WHERE items.digits IN (:v1))
