SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.changed NOT IN (CAST(? AS DATETIME2))
