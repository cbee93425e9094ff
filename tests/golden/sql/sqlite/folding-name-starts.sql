SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE (' ' || encounters_fold(name)) LIKE ? ESCAPE '!'
