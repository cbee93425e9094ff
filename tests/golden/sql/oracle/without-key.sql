SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.began IS NULL AND pas.id < :v1
ORDER BY pas.id DESC
FETCH FIRST :v2 ROWS ONLY
