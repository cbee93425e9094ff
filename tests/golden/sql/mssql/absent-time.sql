SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.began NOT IN (CAST(? AS DATETIME))
