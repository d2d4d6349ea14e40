-- Returns a group of events of one name: [name, job ids, fields]. A field is an array with a value for each job, or one value for all.
-- Called by: many.
CREATE FUNCTION event(_name text, _ids text[], _fields json DEFAULT NULL) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT json_build_array(_name, _ids, _fields)::text
$body$;
