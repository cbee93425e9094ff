SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (%(v0)s, (SELECT CASE WHEN (CASE WHEN (rtrim(merged) ~ '^(0|-?[1-9][0-9]{0,18})$') THEN CAST(rtrim(merged) AS NUMERIC) END BETWEEN -9223372036854775808 AND 9223372036854775807) THEN CAST(CASE WHEN (rtrim(merged) ~ '^(0|-?[1-9][0-9]{0,18})$') THEN CAST(rtrim(merged) AS NUMERIC) END AS BIGINT) END AS anon_1 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (%(v1)s) AND merged IS NOT NULL 
 LIMIT %(param_1)s::INTEGER))
