-- Returns how many jobs of a group wait, up to _most.
-- Called by: choose-turns.sql, forget-groups.sql, groups-of.sql, list-jobs.sql, rest-ends.sql.
-- States: -2 grouped, 0 keyed.
CREATE FUNCTION group_waits(_queue int, _key text, _most bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $body$
BEGIN
  RETURN (
    SELECT count(*) FROM (
      SELECT FROM jobs WHERE queue = _queue AND lock_key = _key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
      ORDER BY priority, ord LIMIT _most
    ) waits
  );
END
$body$;
