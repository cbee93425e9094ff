SELECT pas.written
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.written NOT IN (:v1, :v2, :v3)
ORDER BY pas.id DESC
FETCH FIRST :v4 ROWS ONLY
