SELECT patients.id, patients.merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE patients.id IN (:id_1, :id_2) AND patients.merged IS NOT NULL
