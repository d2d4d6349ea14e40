-- Returns how many more jobs a session may claim under the cap of its queue: roomUnderCap of job/cap.ts.
-- Called by: take.sql.
-- States: 3 active.
CREATE FUNCTION room_under_cap(
  _queue int, _session text, _most float8, _active bigint, _now bigint
) RETURNS float8 LANGUAGE plpgsql AS $body$
DECLARE
  _free float8 := greatest(0, _most - _active);
BEGIN
  RETURN (
    WITH claimants AS MATERIALIZED (
      SELECT id = _session AS own, slots,
        (
          SELECT count(*) FROM (
            SELECT FROM jobs j WHERE j.queue = _queue AND j.state = 3 AND j.session = s.id ORDER BY fence OFFSET 0
          ) held
        ) AS active
      FROM (SELECT * FROM sessions WHERE queue = _queue AND reaped < 2 AND expires_at > _now ORDER BY look_at OFFSET 0) s
      WHERE reaped = 0
    ), sharing AS (
      SELECT greatest(1, floor(_most / greatest(1, count(*) FILTER (WHERE slots > 0)))) AS share FROM claimants
    ), unused AS (SELECT own, greatest(0, least(share, slots) - active) AS jobs FROM claimants, sharing)
    SELECT least(
      _free, greatest(coalesce(sum(jobs) FILTER (WHERE own), 0), _free - coalesce(sum(jobs) FILTER (WHERE NOT own), 0))
    )
    FROM unused
  );
END
$body$;
