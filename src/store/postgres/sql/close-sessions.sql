-- Hands back everything in one call. It locks all sessions first, then jobs, then names: every verb takes locks in this order.
-- Called by: session.ts.
-- States: 3 active.
CREATE FUNCTION close_sessions(_names text[], _ids text[], _charged boolean) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _one record;
  _queues int[] := '{}';
  _sessions text[] := '{}';
  _held text[];
  _limits float8[];
  _losses text[];
BEGIN
  FOR _one IN
    SELECT DISTINCT q.queue, r.id COLLATE "C" AS id FROM unnest(_names, _ids) r(name, id)
    JOIN queues q USING (name) ORDER BY queue, id
  LOOP
    PERFORM FROM sessions WHERE queue = _one.queue AND id = _one.id FOR UPDATE;
    IF FOUND THEN
      _queues := _queues || _one.queue;
      _sessions := _sessions || _one.id;
    END IF;
  END LOOP;
  FOR _one IN SELECT queue, array_agg(id) AS ids FROM unnest(_queues, _sessions) r(queue, id) GROUP BY queue ORDER BY queue LOOP
    _held := ARRAY(
      SELECT j.id FROM unnest(_one.ids) o(id),
        LATERAL (SELECT id, fence FROM jobs WHERE queue = _one.queue AND state = 3 AND session = o.id ORDER BY fence OFFSET 0) j
    );
    PERFORM FROM (SELECT DISTINCT id FROM unnest(_held) id ORDER BY id) o,
      LATERAL (SELECT FROM jobs WHERE queue = _one.queue AND id = o.id FOR UPDATE) j;
    SELECT array_agg(h.id), array_agg(h.max_stalls), array_agg(h.loss) INTO _held, _limits, _losses
    FROM (
      SELECT j.id, s.max_stalls, s.loss FROM unnest(_one.ids) o(id),
        LATERAL (SELECT id, fence FROM jobs WHERE queue = _one.queue AND state = 3 AND session = o.id ORDER BY fence OFFSET 0) j
      JOIN LATERAL (
        SELECT max_stalls, CASE WHEN _charged THEN loss_of(owner, 'exit') END AS loss FROM sessions owner
        WHERE owner.queue = _one.queue AND owner.id = o.id
      ) s ON true
      ORDER BY j.fence
    ) h;
    IF _held IS NOT NULL THEN PERFORM hand_back(_one.queue, _clock, _held, CASE WHEN _charged THEN _limits END, _losses); END IF;
    PERFORM FROM (
      SELECT n.name FROM unnest(_one.ids) o(id),
        LATERAL (SELECT name FROM named WHERE queue = _one.queue AND session = o.id ORDER BY name OFFSET 0) n
      ORDER BY n.name OFFSET 0
    ) o, LATERAL (SELECT FROM named WHERE queue = _one.queue AND name = o.name FOR UPDATE) n;
    DELETE FROM named WHERE queue = _one.queue AND session = ANY (_one.ids);
    PERFORM free_names(_one.queue, id, 2147483647) FROM unnest(_one.ids) id;
    DELETE FROM sessions WHERE queue = _one.queue AND id = ANY (_one.ids);
    DELETE FROM revocations WHERE queue = _one.queue AND session = ANY (_one.ids);
    DELETE FROM callers
    WHERE ctid = ANY (
      ARRAY(SELECT c.ctid FROM callers c WHERE c.queue = _one.queue AND c.id = ANY (_one.ids) FOR UPDATE OF c SKIP LOCKED)
    );
  END LOOP;
  RETURN 'null';
END
$body$;
