SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE ((convert(state USING utf8mb4) COLLATE utf8mb4_bin) NOT IN (%(v0)s, %(v1)s))
