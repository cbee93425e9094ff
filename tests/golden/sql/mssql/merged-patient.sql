SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (?, ?, (SELECT TOP 1 merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (?) AND merged IS NOT NULL), (SELECT TOP 1 merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (?) AND merged IS NOT NULL))
