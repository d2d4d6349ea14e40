-- Writes what a claim has done to groups, whose rows it has locked: active jobs, window, and, in turn, the number in line. _planned: as many
-- jobs as the claim wanted. If it got fewer, the group stays in line. _plain_turn, _last: the numbers of the queue. They are not written if
-- another claim is about to write them.
-- Called by: grant-by-id.sql, grant-groups.sql.
CREATE FUNCTION write_turns(
  _queue int, _clock float8, _keys text[], _took int[], _turns bigint[] DEFAULT NULL, _planned int[] DEFAULT NULL,
  _last bigint DEFAULT NULL, _plain_turn bigint DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
BEGIN
  WITH o AS MATERIALIZED (
    SELECT g.at, g.active + o.took AS active,
      CASE WHEN _turns IS NULL OR o.took = 0 AND o.planned > 0 THEN g.turn WHEN o.took < o.planned THEN coalesce(o.turn, _last)
        ELSE o.turn END AS turn,
      NULL::bigint AS last,
      CASE WHEN o.took = 0 OR g.window_ends > _now OR g.ms IS NULL THEN g.window_ends ELSE ceil(_clock + g.ms)::bigint END AS ends,
      CASE WHEN o.took = 0 THEN g.window_used WHEN g.window_ends > _now THEN g.window_used + o.took ELSE o.took END AS used,
      g.most, g.rate
    FROM queues q, unnest(_keys, _took, _turns, _planned) o(key, took, turn, planned),
      LATERAL (
        SELECT ctid AS at, active, turn, window_ends, window_used, coalesce(max_active, q.group_max) AS most,
          coalesce(rate_max, q.group_rate_max) AS rate, CASE WHEN rate_max IS NULL THEN q.group_rate_ms ELSE rate_ms END AS ms
        FROM groups g WHERE g.queue = _queue AND g.key = o.key OFFSET 0
      ) g
    WHERE q.queue = _queue
    UNION ALL
    SELECT * FROM (
      SELECT ctid, 0, greatest(turn, _plain_turn), greatest(last_turn, _last), window_ends, window_used, 0::float8, NULL::float8 FROM groups
      WHERE queue = _queue AND key = '' AND _plain_turn IS NOT NULL AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
    ) numbers
  )
  UPDATE groups g
  SET active = o.active, turn = o.turn, last_turn = o.last, window_ends = o.ends, window_used = o.used,
    place = group_place(g.paused, o.active, o.most, NULL),
    rests_until = group_rest(g.blocked_until, o.ends, o.used, o.rate, NULL, _now)
  FROM o WHERE g.ctid = o.at;
END
$body$;
