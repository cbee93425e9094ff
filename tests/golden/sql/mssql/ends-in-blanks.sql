SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.name <> rtrim(pas.name)
