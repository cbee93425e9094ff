SELECT TOP (?) id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE began IS NULL AND (id < ?) ORDER BY id DESC
