-- Returns whether a further job of a group may be active. _own, _common: the limits of the group and of all groups.
-- Called by: many.
CREATE FUNCTION group_place(
  _paused boolean, _active float8, _own float8, _common float8
) RETURNS boolean LANGUAGE sql IMMUTABLE AS $body$
SELECT NOT _paused AND _active < coalesce(_own, _common, 'infinity')
$body$;
