-- Removes the unlocked jobs of some lists. _children, _parent_too: see clear-lists.sql.
-- Called by: select.ts.
CREATE FUNCTION remove_listed(
  _name text, _lists text[], _age float8, _limit int, _children boolean DEFAULT false, _parent_too boolean DEFAULT false
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _ids text[] := clear_lists((SELECT queue FROM queues WHERE name = _name), _lists, _age, _limit, _children, _parent_too);
BEGIN
  IF cardinality(_ids) = 0 THEN PERFORM tell_cleaned(_name, 0); END IF;
  RETURN to_json(_ids);
END
$body$;
