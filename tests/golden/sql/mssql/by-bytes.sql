SELECT TOP (?) pas.bytes
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.bytes > ?
ORDER BY pas.bytes ASC
