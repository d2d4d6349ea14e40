-- Returns the ms until claims are possible again; 0 if they are. `_max`: the limit of the claim or, for a read from outside, the limit
-- that the workers use.
-- Called by: claim.sql, status.sql, take.sql.
CREATE FUNCTION limited_ms(_row queues, _max double precision, _now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
SELECT greatest(
  0, _row.limited_until - _now,
  CASE WHEN _row.window_ends > _now AND _row.window_used >= _max THEN _row.window_ends - _now ELSE 0 END
)
$body$;
