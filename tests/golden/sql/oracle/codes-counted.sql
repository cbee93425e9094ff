SELECT pas.state, count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.state IN (CAST(:v1 AS CHAR(2000)))
GROUP BY pas.state
ORDER BY count(*) DESC
FETCH FIRST :v2 ROWS ONLY
