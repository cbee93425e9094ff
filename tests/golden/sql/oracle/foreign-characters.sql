SELECT pas.name
FROM (SELECT name FROM t
) pas
WHERE pas.name IN (:v1)
