-- numbers: first page
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE (pas.state NOT IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.began NOT IN (CAST(:v3 AS DATE))
ORDER BY pas.began DESC, pas.stay_id DESC
FETCH FIRST :v4 ROWS ONLY

-- numbers: first page
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE (pas.state NOT IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND (pas.began IS NULL OR pas.began IN (CAST(:v3 AS DATE)))
ORDER BY pas.stay_id DESC
FETCH FIRST :v4 ROWS ONLY

-- numbers: next page
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.state IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000))) AND pas.stay_id IS NOT NULL AND pas.began NOT IN (CAST(:v3 AS DATE)) AND pas.began <= CAST(:v4 AS DATE) AND (pas.began < CAST(:v5 AS DATE) OR pas.stay_id < :v6)
ORDER BY pas.began DESC, pas.stay_id DESC
FETCH FIRST :v7 ROWS ONLY

-- numbers: next page
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.state IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000))) AND pas.stay_id IS NOT NULL AND (pas.began IS NULL OR pas.began IN (CAST(:v3 AS DATE)))
ORDER BY pas.stay_id DESC
FETCH FIRST :v4 ROWS ONLY

-- numbers: few rows
SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.patient_id IN (:v1, :v2) AND patients.replaced_by IS NOT NULL
UNION ALL SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.replaced_by IN (:v3, :v4) AND patients.replaced_by IS NOT NULL

-- numbers: few rows
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.patient_id IN (:v1, :v2) AND (pas.state NOT IN (CAST(:v3 AS CHAR(2000)), CAST(:v4 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL
ORDER BY CASE WHEN pas.changed IS NULL THEN 1 ELSE 0 END, pas.changed DESC, pas.stay_id DESC
FETCH FIRST :v5 ROWS ONLY

-- numbers: number
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE ((pas.patient_id IN (:v1) OR pas.patient_id IN (:v2)) OR CAST(pas.patient_id AS VARCHAR2(64 CHAR)) IN (SELECT items.patient_id
FROM (SELECT patient_id, number, authority FROM patient_numbers
) items
WHERE (items."number" IN (:v3) AND items.authority IN (:v4) OR items."number" IN (:v5)))) AND pas.patient_id IS NOT NULL

-- numbers: name starts
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE ((' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.used_name), :v1)), :v2, :v3), :v4, :v5), :v6, :v7), :v8, :v9), :v10, :v11), :v12, :v13), :v14, :v15), :v16, :v17), :v18, :v19), :v20, :v21), :v22, :v23), :v24, :v25), :v26, :v27)))) LIKE :v28 ESCAPE '!' OR (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.birth_name), :v29)), :v30, :v31), :v32, :v33), :v34, :v35), :v36, :v37), :v38, :v39), :v40, :v41), :v42, :v43), :v44, :v45), :v46, :v47), :v48, :v49), :v50, :v51), :v52, :v53), :v54, :v55)))) LIKE :v56 ESCAPE '!' OR (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.given), :v57)), :v58, :v59), :v60, :v61), :v62, :v63), :v64, :v65), :v66, :v67), :v68, :v69), :v70, :v71), :v72, :v73), :v74, :v75), :v76, :v77), :v78, :v79), :v80, :v81), :v82, :v83)))) LIKE :v84 ESCAPE '!') AND pas.patient_id IS NOT NULL

-- numbers: born on a day
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE pas.born >= CAST(:v1 AS DATE) AND pas.born < CAST(:v2 AS DATE) AND pas.patient_id IS NOT NULL

-- texts: dates
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.began >= :v1 AND pas.began NOT IN (:v2, :v3) AND pas.began < :v4 AND pas.began NOT IN (:v5, :v6) AND (pas.state NOT IN (CAST(:v7 AS CHAR(2000)), CAST(:v8 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.began NOT IN (:v9, :v10)
ORDER BY pas.began DESC, pas.stay_id DESC
FETCH FIRST :v11 ROWS ONLY

-- texts: next page
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.kind IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000))) AND (pas.state NOT IN (CAST(:v3 AS CHAR(2000)), CAST(:v4 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.stay_id > CAST(:v5 AS CHAR(2000))
ORDER BY pas.stay_id ASC
FETCH FIRST :v6 ROWS ONLY

-- texts: number
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (pas.patient_id IN (:v1) OR pas.patient_id IN (SELECT LOWER(RAWTOHEX(items.patient_id))
FROM (SELECT patient_id, number, authority FROM patient_numbers
) items
WHERE items."number" IN (:v2))) AND pas.patient_id IS NOT NULL

-- texts: name contains
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (((' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.used_name), :v1)), :v2, :v3), :v4, :v5), :v6, :v7), :v8, :v9), :v10, :v11), :v12, :v13), :v14, :v15), :v16, :v17), :v18, :v19), :v20, :v21), :v22, :v23), :v24, :v25), :v26, :v27)))) LIKE :v28 ESCAPE '!' OR (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.birth_name), :v29)), :v30, :v31), :v32, :v33), :v34, :v35), :v36, :v37), :v38, :v39), :v40, :v41), :v42, :v43), :v44, :v45), :v46, :v47), :v48, :v49), :v50, :v51), :v52, :v53), :v54, :v55)))) LIKE :v56 ESCAPE '!') OR ((' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.used_name), :v57)), :v58, :v59), :v60, :v61), :v62, :v63), :v64, :v65), :v66, :v67), :v68, :v69), :v70, :v71), :v72, :v73), :v74, :v75), :v76, :v77), :v78, :v79), :v80, :v81), :v82, :v83)))) LIKE :v84 ESCAPE '!' OR (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.birth_name), :v85)), :v86, :v87), :v88, :v89), :v90, :v91), :v92, :v93), :v94, :v95), :v96, :v97), :v98, :v99), :v100, :v101), :v102, :v103), :v104, :v105), :v106, :v107), :v108, :v109), :v110, :v111)))) LIKE :v112 ESCAPE '!')) AND pas.patient_id IS NOT NULL

-- texts: name is
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (((' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.used_name), :v1)), :v2, :v3), :v4, :v5), :v6, :v7), :v8, :v9), :v10, :v11), :v12, :v13), :v14, :v15), :v16, :v17), :v18, :v19), :v20, :v21), :v22, :v23), :v24, :v25), :v26, :v27)))) LIKE :v28 ESCAPE '!' OR (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.birth_name), :v29)), :v30, :v31), :v32, :v33), :v34, :v35), :v36, :v37), :v38, :v39), :v40, :v41), :v42, :v43), :v44, :v45), :v46, :v47), :v48, :v49), :v50, :v51), :v52, :v53), :v54, :v55)))) LIKE :v56 ESCAPE '!') OR ((' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.used_name), :v57)), :v58, :v59), :v60, :v61), :v62, :v63), :v64, :v65), :v66, :v67), :v68, :v69), :v70, :v71), :v72, :v73), :v74, :v75), :v76, :v77), :v78, :v79), :v80, :v81), :v82, :v83)))) LIKE :v84 ESCAPE '!' OR (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(pas.birth_name), :v85)), :v86, :v87), :v88, :v89), :v90, :v91), :v92, :v93), :v94, :v95), :v96, :v97), :v98, :v99), :v100, :v101), :v102, :v103), :v104, :v105), :v106, :v107), :v108, :v109), :v110, :v111)))) LIKE :v112 ESCAPE '!')) AND pas.patient_id IS NOT NULL

-- texts: born after
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (pas.born >= :v1 OR pas.born IN (:v2, :v3, :v4, :v5, :v6, :v7, :v8)) AND pas.patient_id IS NOT NULL

-- uuids: id
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, TO_CHAR(pas.began, 'YYYY-MM-DD HH24:MI:SS.FF9'), TO_CHAR(pas.ended, 'YYYY-MM-DD HH24:MI:SS.FF9'), pas.unit, TO_CHAR(pas.changed, 'YYYY-MM-DD HH24:MI:SS.FF9')
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.stay_id IN (:v1) AND (pas.state NOT IN (CAST(:v2 AS CHAR(2000)), CAST(:v3 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL
ORDER BY pas.stay_id ASC
FETCH FIRST :v4 ROWS ONLY

-- uuids: next page
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, TO_CHAR(pas.began, 'YYYY-MM-DD HH24:MI:SS.FF9'), TO_CHAR(pas.ended, 'YYYY-MM-DD HH24:MI:SS.FF9'), pas.unit, TO_CHAR(pas.changed, 'YYYY-MM-DD HH24:MI:SS.FF9')
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE (pas.state NOT IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.changed IS NOT NULL AND pas.changed <= TO_TIMESTAMP(:v3, 'YYYY-MM-DD HH24:MI:SS.FF9') AND (pas.changed < TO_TIMESTAMP(:v4, 'YYYY-MM-DD HH24:MI:SS.FF9') OR pas.stay_id < :v5)
ORDER BY pas.changed DESC, pas.stay_id DESC
FETCH FIRST :v6 ROWS ONLY

-- uuids: next page
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, TO_CHAR(pas.began, 'YYYY-MM-DD HH24:MI:SS.FF9'), TO_CHAR(pas.ended, 'YYYY-MM-DD HH24:MI:SS.FF9'), pas.unit, TO_CHAR(pas.changed, 'YYYY-MM-DD HH24:MI:SS.FF9')
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE (pas.state NOT IN (CAST(:v1 AS CHAR(2000)), CAST(:v2 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.changed IS NULL
ORDER BY pas.stay_id DESC
FETCH FIRST :v3 ROWS ONLY

-- uuids: dates
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, TO_CHAR(pas.began, 'YYYY-MM-DD HH24:MI:SS.FF9'), TO_CHAR(pas.ended, 'YYYY-MM-DD HH24:MI:SS.FF9'), pas.unit, TO_CHAR(pas.changed, 'YYYY-MM-DD HH24:MI:SS.FF9')
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.began >= TO_TIMESTAMP(:v1, 'YYYY-MM-DD HH24:MI:SS.FF9') AND pas.began NOT IN (TO_TIMESTAMP(:v2, 'YYYY-MM-DD HH24:MI:SS.FF9')) AND pas.began < TO_TIMESTAMP(:v3, 'YYYY-MM-DD HH24:MI:SS.FF9') AND pas.began NOT IN (TO_TIMESTAMP(:v4, 'YYYY-MM-DD HH24:MI:SS.FF9')) AND (pas.state NOT IN (CAST(:v5 AS CHAR(2000)), CAST(:v6 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.began NOT IN (TO_TIMESTAMP(:v7, 'YYYY-MM-DD HH24:MI:SS.FF9'))
ORDER BY pas.began DESC, pas.stay_id DESC
FETCH FIRST :v8 ROWS ONLY

-- uuids: patient
SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.patient_id IN (:v1) AND patients.replaced_by IS NOT NULL
UNION ALL SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.replaced_by IN (:v2) AND patients.replaced_by IS NOT NULL

-- uuids: patient
SELECT pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, TO_CHAR(pas.began, 'YYYY-MM-DD HH24:MI:SS.FF9'), TO_CHAR(pas.ended, 'YYYY-MM-DD HH24:MI:SS.FF9'), pas.unit, TO_CHAR(pas.changed, 'YYYY-MM-DD HH24:MI:SS.FF9')
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.patient_id IN (:v1) AND (pas.state NOT IN (CAST(:v2 AS CHAR(2000)), CAST(:v3 AS CHAR(2000))) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL
ORDER BY CASE WHEN pas.changed IS NULL THEN 1 ELSE 0 END, pas.changed DESC, pas.stay_id DESC
FETCH FIRST :v4 ROWS ONLY

-- uuids: number
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE pas.patient_id IN (SELECT items.patient_id
FROM (SELECT patient_id, number, authority FROM patient_numbers
) items
WHERE items."number" IN (:v1)) AND pas.patient_id IS NOT NULL

-- uuids: name starts
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE ((' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(CAST(pas.used_name AS VARCHAR2(4000))), :v1)), :v2, :v3), :v4, :v5), :v6, :v7), :v8, :v9), :v10, :v11), :v12, :v13), :v14, :v15), :v16, :v17), :v18, :v19), :v20, :v21), :v22, :v23), :v24, :v25), :v26, :v27)))) LIKE :v28 ESCAPE '!' OR (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(CAST(pas.birth_name AS VARCHAR2(4000))), :v29)), :v30, :v31), :v32, :v33), :v34, :v35), :v36, :v37), :v38, :v39), :v40, :v41), :v42, :v43), :v44, :v45), :v46, :v47), :v48, :v49), :v50, :v51), :v52, :v53), :v54, :v55)))) LIKE :v56 ESCAPE '!') AND pas.patient_id IS NOT NULL

-- uuids: born until
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (pas.born < :v1 OR pas.born < :v2 AND pas.born NOT IN (:v3)) AND pas.patient_id IS NOT NULL

-- codes counted
SELECT pas.state, count(*)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
GROUP BY pas.state
ORDER BY count(*) DESC
FETCH FIRST :v1 ROWS ONLY

-- ends in blanks
SELECT count(*)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.visit <> rtrim(pas.visit)
