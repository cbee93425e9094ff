SELECT patients.id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients 
WHERE (' ' || compose(trim(regexp_replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(lower(decompose(lower(patients.name), :decompose_1)), :regexp_replace_1, :regexp_replace_2), :replace_1, :replace_2), :replace_3, :replace_4), :replace_5, :replace_6), :replace_7, :replace_8), :replace_9, :replace_10), :replace_11, :replace_12), :replace_13, :replace_14), :replace_15, :replace_16), :replace_17, :replace_18), :replace_19, :replace_20), :translate_1, :translate_2), :regexp_replace_3, :regexp_replace_4)))) LIKE :name_1 ESCAPE '!'
