SELECT pas.id, pas.patient, pas.state, pas.began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE pas.patient IN (?, ?, (SELECT TOP 1 patients.merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS patients 
WHERE patients.id IN (?) AND patients.merged IS NOT NULL), (SELECT TOP 1 patients.merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS patients 
WHERE patients.id IN (?) AND patients.merged IS NOT NULL))
