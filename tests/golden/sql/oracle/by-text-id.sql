SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.name > :v1
ORDER BY pas.name ASC
FETCH FIRST :v2 ROWS ONLY
