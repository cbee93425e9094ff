SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE (state NOT IN (%(v0)s, %(v1)s))
