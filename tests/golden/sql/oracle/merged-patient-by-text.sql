SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE CAST(patient AS VARCHAR2(64 CHAR)) IN (CAST(:v0 AS VARCHAR2(64 CHAR)), (SELECT merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE id IN (:v1) AND merged IS NOT NULL
 FETCH FIRST 1 ROWS ONLY))
