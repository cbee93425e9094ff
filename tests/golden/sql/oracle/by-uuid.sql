SELECT pas.uuid
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.uuid > :v1
ORDER BY pas.uuid ASC
FETCH FIRST :v2 ROWS ONLY
