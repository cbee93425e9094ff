SELECT convert(state USING utf8mb4) COLLATE utf8mb4_bin AS anon_1, count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE state IN (%(v0)s) AND (convert(state USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v0)s) GROUP BY convert(state USING utf8mb4) COLLATE utf8mb4_bin ORDER BY count(*) DESC 
 LIMIT %(row_limit)s
