SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (%(v0)s, %(v1)s, (SELECT merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (%(v2)s) AND merged IS NOT NULL 
 LIMIT %(param_1)s), (SELECT merged 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (%(v3)s) AND merged IS NOT NULL 
 LIMIT %(param_2)s))
