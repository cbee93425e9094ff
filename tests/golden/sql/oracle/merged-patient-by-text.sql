SELECT pas.id, pas.patient, pas.state, pas.began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE CAST(pas.patient AS VARCHAR2(64 CHAR)) IN (CAST(:patient_1 AS VARCHAR2(64 CHAR)), (SELECT patients.survivor 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE patients.code IN (:code_1) AND patients.survivor IS NOT NULL
 FETCH FIRST 1 ROWS ONLY))
