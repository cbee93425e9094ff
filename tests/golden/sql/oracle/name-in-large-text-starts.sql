SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(CAST(patients.note AS VARCHAR2(4000))), :v1)), :v2, :v3), :v4, :v5), :v6, :v7), :v8, :v9), :v10, :v11), :v12, :v13), :v14, :v15), :v16, :v17), :v18, :v19), :v20, :v21), :v22, :v23), :v24, :v25), :v26, :v27)))) LIKE :v28 ESCAPE '!'
