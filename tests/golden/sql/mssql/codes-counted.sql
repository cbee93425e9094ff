SELECT TOP (?) pas.state COLLATE Latin1_General_100_BIN2 AS anon_1, count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE pas.state IN (?) AND (pas.state COLLATE Latin1_General_100_BIN2) IN (?) GROUP BY pas.state COLLATE Latin1_General_100_BIN2 ORDER BY count(*) DESC
