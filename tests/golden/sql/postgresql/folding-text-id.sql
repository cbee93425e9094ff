SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE CAST(name AS TEXT) COLLATE "C" > %(v0)s::VARCHAR COLLATE "C" ORDER BY CAST(name AS TEXT) COLLATE "C" ASC 
 LIMIT %(row_limit)s::INTEGER
