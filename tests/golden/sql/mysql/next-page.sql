SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE (began <= %(v0)s) AND ((began < %(v1)s) OR (id < %(v2)s)) AND state IN (%(v3)s) AND (convert(state USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v3)s) ORDER BY began DESC, id DESC 
 LIMIT %(row_limit)s
