SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE patient IN (:v0) ORDER BY CASE WHEN (began IS NULL) THEN 1 ELSE 0 END, began DESC, id DESC
 FETCH FIRST :row_limit ROWS ONLY
