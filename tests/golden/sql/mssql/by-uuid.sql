SELECT TOP (?) LOWER(CONVERT(CHAR(36), pas.uuid))
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.uuid > CAST(? AS UNIQUEIDENTIFIER)
ORDER BY pas.uuid ASC
