-- Returns a row for send_to_parents: a job, its extras, its state and, if it has finished, its result or the reason of its failure.
-- Called by: adopt-child.sql, drop-jobs.sql, fail-open.sql, send-ends.sql, send-to-waiting.sql.
-- States: 4 completed, 5 failed.
CREATE FUNCTION kin_of(_id text, _extras text, _state smallint, _value text, _reason text) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT json_build_array(_id, _extras, _state, CASE _state WHEN 4 THEN _value WHEN 5 THEN _reason END)
$body$;
