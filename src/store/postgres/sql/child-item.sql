-- Returns what a message says about one child: the state of its link, its result or the reason of its failure, and what a failure does to the
-- parent (deliver.sql).
-- Called by: send-to-parents.sql, settle-children.sql.
CREATE FUNCTION child_item(_child text, _link text, _text text, _release text, _doom text) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT json_build_array(_child, _link, _text, _release, _doom)
$body$;
