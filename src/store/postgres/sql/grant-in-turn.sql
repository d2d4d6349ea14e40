-- The same for queues where jobs with a key wait too. It decides which jobs come first before it locks any row, so that no row is
-- locked in vain.
-- Called by: take.sql.
-- States: 1 waiting.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
-- LAST_PRIORITY = 2147483647
-- REPLY_BYTES = 4194304
CREATE FUNCTION grant_in_turn(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _soon boolean, OUT _bytes bigint,
  OUT _cut boolean, _inline int DEFAULT 2147483647, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _first record;
  _chosen record;
  _freed boolean;
  _plain int;
  _rows text;
  _body text;
BEGIN
  -- include: skip-dead
  _freed := show_freed(_queue, _head_freed, _head_keyed);
  _first := first_of_keys(_queue, _room, _head_keyed);
  SELECT count(*) AS jobs, count(*) FILTER (WHERE id IS NULL) AS plain, array_agg(id) FILTER (WHERE id IS NOT NULL) AS ids
  INTO _chosen
  FROM (
    SELECT * FROM (
      SELECT * FROM (
        SELECT priority, ord, NULL::text AS id FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0
        ORDER BY ord LIMIT _room
      ) s
      UNION ALL
      SELECT * FROM (
        SELECT priority, ord, NULL::text AS id FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head
        ORDER BY ord LIMIT _room
      ) s
      UNION ALL
      SELECT s.* FROM unnest(0 || _priorities, _priorities || 2147483647, _heads || 0::bigint) alive(after, priority, head),
        LATERAL (
          SELECT * FROM (
            SELECT priority, ord, NULL::text AS id FROM jobs
            WHERE queue = _queue AND state = 1 AND priority > alive.after AND priority < alive.priority
            ORDER BY priority, ord LIMIT _room
          ) s
          UNION ALL
          SELECT * FROM (
            SELECT priority, ord, NULL::text AS id FROM jobs
            WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord < 0 ORDER BY priority, ord LIMIT _room
          ) s
          UNION ALL
          SELECT * FROM (
            SELECT priority, ord, NULL::text AS id FROM jobs
            WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord >= alive.head
            ORDER BY priority, ord LIMIT _room
          ) s
        ) s
      UNION ALL
      SELECT j.* FROM unnest(_first._ids) o(id),
        LATERAL (SELECT priority, ord, id FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 <= 1 OFFSET 0) j
    ) merged
    ORDER BY priority, ord LIMIT _room
  ) chosen;
  _soon := _freed OR _first._soon;
  WITH next AS (
    SELECT at, size, CASE WHEN upto + 0 <= 4194304 OR (upto = size AND 0 = 0) THEN nextval('fences') END AS fence
    FROM (
      SELECT at, size, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS upto
      FROM (
        SELECT at, size FROM (
          SELECT * FROM (
            SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
            WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 AND (xmax = 0 OR untouched(xmax))
            ORDER BY ord LIMIT _chosen.plain FOR UPDATE SKIP LOCKED
          ) s
          UNION ALL
          SELECT * FROM (
            SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
            WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
            ORDER BY ord LIMIT _chosen.plain FOR UPDATE SKIP LOCKED
          ) s
          UNION ALL
          SELECT s.* FROM unnest(0 || _priorities, _priorities || 2147483647, _heads || 0::bigint) alive(after, priority, head),
            LATERAL (
              SELECT * FROM (
                SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
                WHERE queue = _queue AND state = 1 AND priority > alive.after AND priority < alive.priority
                  AND (xmax = 0 OR untouched(xmax))
                ORDER BY priority, ord LIMIT _chosen.plain FOR UPDATE SKIP LOCKED
              ) s
              UNION ALL
              SELECT * FROM (
                SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
                WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord < 0 AND (xmax = 0 OR untouched(xmax))
                ORDER BY priority, ord LIMIT _chosen.plain FOR UPDATE SKIP LOCKED
              ) s
              UNION ALL
              SELECT * FROM (
                SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
                WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord >= alive.head
                  AND (xmax = 0 OR untouched(xmax))
                ORDER BY priority, ord LIMIT _chosen.plain FOR UPDATE SKIP LOCKED
              ) s
            ) s
          UNION ALL
          SELECT j.* FROM unnest(_chosen.ids) o(id),
            LATERAL (
              SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
              WHERE queue = _queue AND id = o.id AND state + 0 <= 1 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
            ) j
        ) merged
        ORDER BY priority, ord LIMIT _room
      ) waiting
    ) waiting
  )
  -- include: grant
  _soon := _soon OR _taken < _chosen.jobs AND NOT _cut;
END
$body$;
