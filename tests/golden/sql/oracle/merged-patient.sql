SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE patient IN (:v0, :v1, (SELECT merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE id IN (:v2) AND merged IS NOT NULL
 FETCH FIRST 1 ROWS ONLY), (SELECT merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE id IN (:v3) AND merged IS NOT NULL
 FETCH FIRST 1 ROWS ONLY))
