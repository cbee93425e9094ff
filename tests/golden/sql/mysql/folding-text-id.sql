SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE convert(name USING utf8mb4) COLLATE utf8mb4_bin > %(v0)s ORDER BY convert(name USING utf8mb4) COLLATE utf8mb4_bin ASC 
 LIMIT %(row_limit)s
