SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (?, (SELECT CASE WHEN (CAST(CAST(rtrim(merged COLLATE "BINARY") AS BIGINT) AS TEXT) = rtrim(merged COLLATE "BINARY")) THEN CAST(rtrim(merged COLLATE "BINARY") AS BIGINT) END AS anon_1 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (?) AND merged IS NOT NULL
 LIMIT ? OFFSET ?))
