SELECT pas.id, pas.patient, pas.state, pas.began
FROM (SELECT id, patient, state, began FROM stays -- all
) pas
WHERE pas.bytes IN (?, ?) AND pas.bytes + 0x01 IN (CAST(? AS VARBINARY(8000)) + 0x01, CAST(? AS VARBINARY(8000)) + 0x01)
