SELECT count(*)
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.changed NOT IN (TO_TIMESTAMP(:v1, 'YYYY-MM-DD HH24:MI:SS.FF9'))
