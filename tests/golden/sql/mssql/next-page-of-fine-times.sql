SELECT TOP (?) CONVERT(VARCHAR(33), pas.changed, 121)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.changed <= CAST(? AS DATETIME2) AND pas.id IS NOT NULL
ORDER BY pas.changed DESC, pas.id DESC
