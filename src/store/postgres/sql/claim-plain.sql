-- The fast path of a claim: jobs without key and priority, in a queue that is not paused, limited or capped. It is also part of the fast
-- path of settling (settle-plain.sql). It is one function that calls no other, under the settings of the connection (sql.ts). If
-- the queue needs more, it calls `claim`, which must then find everything as if this attempt had never happened.
-- Called by: claim.ts.
-- States: -1 behind.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
CREATE FUNCTION claim_plain(
  _name text, _session text, _seq bigint, _count int, _by text, _inline int DEFAULT 2147483647
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _last bigint;
  -- include: take-variables
BEGIN
  -- One snapshot for all of it: a call must not miss its own first run between two looks.
  SELECT c.seq,
    -- include: plain-look
    AND NOT (SELECT ord FROM jobs WHERE queue = _queue AND state = -1 ORDER BY priority, ord LIMIT 1) IS NOT NULL
  INTO _last, _head, _left, _due, _undone, _plain
  FROM callers c, sessions s, queues q,
    -- include: journal-sums
  WHERE c.queue = _queue AND c.id = _session AND s.queue = _queue AND s.id = _session AND
    -- include: undoubted
    AND q.queue = _queue;
  IF _plain IS NOT TRUE OR _due <= _now OR _seq <= _last THEN
    RETURN claim(_name, _session, _seq, _count, NULL, _by, NULL, NULL, NULL, false, _inline);
  END IF;
  -- A look at an empty queue costs no transaction number and no fsync.
  IF _left <= 0 OR _count = 0 THEN RETURN claim_reply(NULL, true, false, 0, _due, _now, _left <= 0, false, _undone); END IF;
  UPDATE callers SET seq = _seq, used_at = _now, reply = NULL WHERE queue = _queue AND id = _session AND seq < _seq;
  IF NOT FOUND THEN RETURN claim(_name, _session, _seq, _count, NULL, _by, NULL, NULL, NULL, false, _inline); END IF;
  PERFORM FROM sessions s
  WHERE s.queue = _queue AND s.id = _session AND
    -- include: undoubted
  FOR KEY SHARE;
  IF NOT FOUND THEN
    UPDATE callers SET seq = _seq - 1 WHERE queue = _queue AND id = _session;
    RETURN claim(_name, _session, _seq, _count, NULL, _by, NULL, NULL, NULL, false, _inline);
  END IF;
  -- include: take
  IF _taken > 0 THEN
    INSERT INTO journal (queue, waiting, active, events, body) VALUES (_queue, -_taken, _taken, _taken, _active);
  END IF;
  -- include: take-rest
  -- include: fold-sometimes
  RETURN claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more, _undone);
END
$body$;
