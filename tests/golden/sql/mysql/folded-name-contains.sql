SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE (concat(' ', lower(name))) LIKE %(v0)s ESCAPE '!'
