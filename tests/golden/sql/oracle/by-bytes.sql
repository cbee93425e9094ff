SELECT pas.bytes
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.bytes > :v1
ORDER BY pas.bytes ASC
FETCH FIRST :v2 ROWS ONLY
