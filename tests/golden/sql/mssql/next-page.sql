SELECT TOP (?) id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE (began <= CAST(? AS DATETIME)) AND ((began < CAST(? AS DATETIME)) OR (id < ?)) AND state IN (?) AND (state COLLATE Latin1_General_100_BIN2) IN (?) ORDER BY began DESC, id DESC
