SELECT pas.id, pas.patient, pas.state, pas.began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE pas.patient IN (:patient_1, :patient_2, (SELECT patients.merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE patients.id IN (:id_1) AND patients.merged IS NOT NULL
 FETCH FIRST 1 ROWS ONLY), (SELECT patients.merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE patients.id IN (:id_2) AND patients.merged IS NOT NULL
 FETCH FIRST 1 ROWS ONLY))
