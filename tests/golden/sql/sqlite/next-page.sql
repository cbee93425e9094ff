SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE (began <= ?) AND ((began < ?) OR (id < ?)) AND state IN (?) ORDER BY began DESC, id DESC
 LIMIT ? OFFSET ?
