-- Returns a message from children to a parent: their items (child-item.sql).
-- Called by: send-to-parents.sql, settle-children.sql.
CREATE FUNCTION child_message(_parent text, _items json) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT json_build_object('kind', 'child', 'id', _parent, 'items', _items)::text
$body$;
