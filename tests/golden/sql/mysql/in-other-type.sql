SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE CAST(colour AS CHAR) IN (%(v0)s) AND (CAST(colour AS CHAR) NOT IN (%(v1)s))
