SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE name IN (%(v0)s)
