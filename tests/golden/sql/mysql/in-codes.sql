SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE state IN (%(v0)s, %(v1)s) AND (convert(state USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v0)s, %(v1)s)
