SELECT TOP (?) id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE began >= CAST(? AS DATETIME) ORDER BY began ASC, id ASC
