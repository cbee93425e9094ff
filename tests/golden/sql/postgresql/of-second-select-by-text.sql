SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (SELECT CASE WHEN (CASE WHEN (rtrim(id) ~ '^(0|-?[1-9][0-9]{0,18})$') THEN CAST(rtrim(id) AS NUMERIC) END BETWEEN -9223372036854775808 AND 9223372036854775807) THEN CAST(CASE WHEN (rtrim(id) ~ '^(0|-?[1-9][0-9]{0,18})$') THEN CAST(rtrim(id) AS NUMERIC) END AS BIGINT) END AS anon_1 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (%(v0)s))
