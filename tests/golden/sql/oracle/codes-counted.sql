SELECT pas.state, count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE pas.state IN (CAST(:state_1 AS CHAR(2000))) GROUP BY pas.state ORDER BY count(*) DESC
 FETCH FIRST 7 ROWS ONLY
