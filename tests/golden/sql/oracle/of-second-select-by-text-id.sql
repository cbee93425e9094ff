SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE id IN (SELECT patient 
FROM (SELECT patient, digits FROM numbers
) pas 
WHERE digits IN (:v0))
