SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE CAST(colour AS TEXT) IN (?) AND (CAST(colour AS TEXT) NOT IN (?))
