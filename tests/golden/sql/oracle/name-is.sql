SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE name IN (:v0)
