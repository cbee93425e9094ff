SELECT pas.id, pas.patient, pas.state, pas.began 
FROM (SELECT id, patient, state, began FROM stays -- all
) pas 
WHERE pas.began <= CAST(:began_1 AS DATE) AND (pas.began < CAST(:began_2 AS DATE) OR pas.id < :id_1) AND pas.state IN (CAST(:state_1 AS CHAR(2000))) ORDER BY pas.began DESC, pas.id DESC
 FETCH FIRST 7 ROWS ONLY
