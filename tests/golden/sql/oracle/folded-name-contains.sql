SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE (' ' || lower(name)) LIKE :v0 ESCAPE '!'
