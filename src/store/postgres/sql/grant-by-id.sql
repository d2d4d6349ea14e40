-- Grants the locks of the named jobs that wait, in their order.
-- Called by: take.sql.
-- States: 1 waiting, 2 delayed, 3 active.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
-- REPLY_BYTES = 4194304
CREATE FUNCTION grant_by_id(
  _queue int, _session text, _seq bigint, _ids text[], _count int, _by text, _timed float8, _clock float8,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _cut boolean, _inline int DEFAULT 2147483647
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _bytes bigint;
  _due tid[];
  _one record;
  _chosen text[] := '{}';
  _keys text[] := '{}';
  _plain int;
  _rows text;
  _body text;
BEGIN
  PERFORM FROM (SELECT DISTINCT id FROM unnest(_ids) id ORDER BY id) o,
    LATERAL (SELECT FROM jobs WHERE queue = _queue AND id = o.id FOR UPDATE) j;
  PERFORM lock_keys_of(_queue, _ids);
  _due := ARRAY(
    SELECT j.at FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY o(id, n) GROUP BY id) o,
      LATERAL (
        SELECT ctid AS at FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND state + 0 = 2 AND due_at <= floor(_clock) OFFSET 0
      ) j
    ORDER BY o.n
  );
  IF cardinality(_due) > 0 THEN _change := promote(_queue, _due, _change); END IF;
  FOR _one IN
    SELECT j.* FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (SELECT id, lock_key FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 <= 1 OFFSET 0) j
    ORDER BY o.n
  LOOP
    EXIT WHEN cardinality(_chosen) >= _count;
    CONTINUE WHEN _one.id = ANY (_chosen);
    IF _one.lock_key IS NOT NULL THEN
      CONTINUE WHEN _one.lock_key = ANY (_keys)
        OR EXISTS (SELECT FROM jobs WHERE queue = _queue AND lock_key = _one.lock_key AND lock_key IS NOT NULL AND state = 3);
      _keys := _keys || _one.lock_key;
    END IF;
    _chosen := _chosen || _one.id;
  END LOOP;
  WITH next AS (
    SELECT at, size, CASE WHEN upto + 0 <= 4194304 OR (upto = size AND 0 = 0) THEN nextval('fences') END AS fence
    FROM (
      SELECT at, size, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS upto
      FROM (
        SELECT j.* FROM unnest(_chosen) WITH ORDINALITY o(id, n),
          LATERAL (
            SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs j
            WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0
          ) j
        ORDER BY o.n
      ) waiting
    ) waiting
  )
  -- include: grant
END
$body$;
