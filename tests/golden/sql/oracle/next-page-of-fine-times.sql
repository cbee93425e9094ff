SELECT TO_CHAR(pas.changed, 'YYYY-MM-DD HH24:MI:SS.FF9')
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.changed <= TO_TIMESTAMP(:v1, 'YYYY-MM-DD HH24:MI:SS.FF9') AND pas.id IS NOT NULL
ORDER BY pas.changed DESC, pas.id DESC
FETCH FIRST :v2 ROWS ONLY
