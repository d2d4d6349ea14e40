-- Returns the end of the block or of the used window that keeps a group from claims in turn; null: none does. _own, _common: as in
-- group-place.sql, of the rate.
-- Called by: many.
CREATE FUNCTION group_rest(
  _blocked bigint, _ends bigint, _used float8, _own float8, _common float8, _now bigint
) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
SELECT greatest(
  CASE WHEN _blocked > _now THEN _blocked END, CASE WHEN _ends > _now AND _used >= coalesce(_own, _common) THEN _ends END
)
$body$;
