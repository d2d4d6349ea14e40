-- Writes what a claim has done to groups, whose rows it has locked: active jobs, window, and, in turn, the number in line. _planned: as many
-- jobs as the claim wanted. If it got fewer, the group stays in line.
-- Called by: grant-by-id.sql, grant-groups.sql.
CREATE FUNCTION write_turns(
  _queue int, _clock float8, _keys text[], _took int[], _turns bigint[] DEFAULT NULL, _planned int[] DEFAULT NULL,
  _last bigint DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _row queues;
BEGIN
  SELECT * INTO _row FROM queues WHERE queue = _queue;
  WITH o AS MATERIALIZED (
    SELECT g.at, g.active + o.took AS active,
      CASE WHEN _turns IS NULL OR o.took = 0 AND o.planned > 0 THEN g.turn WHEN o.took < o.planned THEN coalesce(o.turn, _last)
        ELSE o.turn END AS turn,
      CASE WHEN o.took = 0 OR g.window_ends > _now OR g.ms IS NULL THEN g.window_ends ELSE ceil(_clock + g.ms)::bigint END AS ends,
      CASE WHEN o.took = 0 THEN g.window_used WHEN g.window_ends > _now THEN g.window_used + o.took ELSE o.took END AS used
    FROM unnest(_keys, _took, _turns, _planned) o(key, took, turn, planned),
      LATERAL (
        SELECT ctid AS at, *, CASE WHEN rate_max IS NULL THEN _row.group_rate_ms ELSE rate_ms END AS ms FROM groups g
        WHERE g.queue = _queue AND g.key = o.key OFFSET 0
      ) g
  )
  UPDATE groups g
  SET active = o.active, turn = o.turn, window_ends = o.ends, window_used = o.used,
    place = group_place(g.paused, o.active, g.max_active, _row.group_max),
    rests_until = group_rest(g.blocked_until, o.ends, o.used, g.rate_max, _row.group_rate_max, _now)
  FROM o WHERE g.ctid = o.at;
END
$body$;
