SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE CAST(colour AS TEXT) IN (%(v0)s) AND (CAST(colour AS TEXT) NOT IN (%(v1)s))
