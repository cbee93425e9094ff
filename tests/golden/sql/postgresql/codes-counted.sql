SELECT state, count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE state IN (%(v0)s) GROUP BY state ORDER BY count(*) DESC 
 LIMIT %(row_limit)s::INTEGER
