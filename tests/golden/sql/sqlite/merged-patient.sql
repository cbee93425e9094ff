SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (?, ?, (SELECT merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (?) AND merged IS NOT NULL
 LIMIT ? OFFSET ?), (SELECT merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (?) AND merged IS NOT NULL
 LIMIT ? OFFSET ?))
