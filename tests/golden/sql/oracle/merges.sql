SELECT patients.id, patients.merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE patients.id IN (:id_1, :id_2) AND patients.merged IS NOT NULL UNION ALL SELECT patients.id, patients.merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE patients.merged IN (:merged_1, :merged_2) AND patients.merged IS NOT NULL
