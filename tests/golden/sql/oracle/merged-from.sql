SELECT patients.code, patients.survivor 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE patients.survivor IN (:survivor_1) AND patients.survivor IS NOT NULL
