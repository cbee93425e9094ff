SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE (pas.written IS NULL OR pas.written IN (:v1, :v2, :v3))
