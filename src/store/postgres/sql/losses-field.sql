-- Returns texts (losses, reasons) as a field of events: one text if all are the same, else an array.
-- Called by: hand-back.sql.
CREATE FUNCTION losses_field(_losses text[]) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT CASE WHEN _losses[1] = ALL (_losses) THEN to_json(_losses[1]) ELSE to_json(_losses) END
$body$;
