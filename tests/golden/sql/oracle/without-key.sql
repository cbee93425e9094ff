SELECT pas.id, pas.patient, pas.state, pas.began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE pas.began IS NULL AND pas.id < :id_1 ORDER BY pas.id DESC
 FETCH FIRST 7 ROWS ONLY
