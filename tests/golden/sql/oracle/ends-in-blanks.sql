SELECT count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE id != rtrim(id)
