SELECT pas.name
FROM (SELECT name FROM t
) pas
WHERE pas.name IN (?) AND (pas.name COLLATE Latin1_General_100_BIN2) IN (?)
