SELECT count(*) AS count_1 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE pas.name != rtrim(pas.name)
