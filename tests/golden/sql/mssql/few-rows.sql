SELECT TOP (?) id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (?) ORDER BY CASE WHEN (began IS NULL) THEN 1 ELSE 0 END, began DESC, id DESC
