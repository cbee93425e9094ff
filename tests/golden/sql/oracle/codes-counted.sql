SELECT state, count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE state IN (CAST(:v0 AS CHAR(2000))) GROUP BY state ORDER BY count(*) DESC
 FETCH FIRST :row_limit ROWS ONLY
