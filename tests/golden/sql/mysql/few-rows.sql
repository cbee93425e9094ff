SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (%(v0)s) ORDER BY CASE WHEN (began IS NULL) THEN 1 ELSE 0 END, began DESC, id DESC 
 LIMIT %(row_limit)s
