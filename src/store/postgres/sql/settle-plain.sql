-- The fast path of most settles: completed jobs that are plain and stay, and a claim by their own session in a queue that is not
-- paused, limited or capped. It is one function that calls no other, under the settings of the connection (sql.ts). If the
-- outcomes or the queue need more, it calls `settle`, which must then find everything as if this attempt had never happened.
-- For one job the server takes 225 µs here and 335 µs in `settle` (without network and sync): calling a function from another one, and
-- starting each statement, costs more than most statements do.
-- Called by: settle.ts.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
CREATE FUNCTION settle_plain(
  _name text, _session text, _seq bigint, _ids text[], _fences bigint[], _texts text[], _count int, _by text,
  _inline int DEFAULT 2147483647
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _many int := cardinality(_ids);
  _queue int;
  _base bigint;
  _done bigint[];
  _finished int;
  _minute int;
  -- include: take-variables
BEGIN
  -- include: enter-fast-settle
  SELECT
    -- include: plain-look
    , CASE WHEN q.metric_points IS NOT NULL THEN _now / 60000 END
  INTO _head, _left, _due, _undone, _plain, _minute
  FROM sessions s, queues q,
    -- include: journal-sums
  WHERE s.queue = _queue AND s.id = _session AND
    -- include: undoubted
    AND q.queue = _queue FOR KEY SHARE OF s;
  IF _plain IS NOT TRUE OR _due <= _now THEN
    UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
    -- include: settle-in-full
  END IF;
  -- include: complete
  IF _finished < _many THEN
    -- The finished jobs are recorded here; the general path then finds them done.
    -- include: note-completed
    UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
    -- include: settle-in-full
  END IF;
  -- include: take
  INSERT INTO journal (queue, waiting, active, completed, finishes, events, body, minute, completions)
  VALUES (
    _queue, -_taken, _taken - _many, _many, _many, _many + _taken,
    concat_ws(',', event('completed', _ids, json_build_object('returnvalue', _texts)), _active), _minute, _many
  );
  -- include: take-rest
  -- include: fold-sometimes
  RETURN '{"results":"' || repeat('d', _many) || '","room":false,"plain":true,"claimed":'
    || claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more, _undone) || '}';
END
$body$;
