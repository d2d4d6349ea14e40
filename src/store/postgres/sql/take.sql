-- Claims jobs: the part that claims and settles share.
-- Runs after the caller was entered and the session locked: _alive says whether the session lives, _last is its last call.
-- Called by: claim.sql, settle.sql.
-- States: 1 waiting, 2 delayed, 3 active.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
-- SOON_MS = 5: when to retry if other transactions held what might have been claimed, in ms.
CREATE FUNCTION take(
  _queue int, _session text, _seq bigint, _count int, _ids text[], _by text, _timed float8, _max float8,
  _window float8, _clock float8, _alive boolean, _last bigint, INOUT _change journal, OUT _taken int,
  OUT _reply text, _inline int DEFAULT 2147483647
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _look record;
  _row queues;
  _room int := 0;
  _got record;
  _jobs text;
  _due bigint;
  _left bigint;
  _soon boolean := false;
  _more boolean := false;
BEGIN
  _taken := 0;
  SELECT q AS row, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0) AS waiting,
    q.delayed + coalesce(j.delayed, 0) AS delayed,
    q.prioritized + coalesce(j.prioritized, 0) + _change.prioritized <= 0
      AND (
        SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
      ) IS NULL AS in_line,
    -- include: any-keyed-alive
    AS keyed
  INTO _look
  FROM queues q,
    LATERAL (
      SELECT sum(waiting) AS waiting, sum(prioritized) AS prioritized, sum(delayed) AS delayed FROM journal
      WHERE journal.queue = q.queue AND journal.number >= q.journal_from
    ) j
  WHERE q.queue = _queue;
  _row := _look.row;
  _left := _look.waiting + _change.waiting + _change.prioritized;
  IF _look.delayed + _change.delayed > 0 THEN
    _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1);
  END IF;
  IF _alive AND _seq <= _last THEN
    -- Carried out already, or a straggler that its caller gave up on: it may see what it got and never get more.
    SELECT
      -- include: claimed-arrays
      , coalesce(_left > 0 AND sum(size) > 2097152, false)
    INTO _jobs, _more
    FROM (
      SELECT *, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs
      WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq ORDER BY fence
    ) j;
  ELSIF _alive AND (_ids IS NOT NULL OR NOT _row.paused) AND (_left > 0 OR _due <= _now) THEN
    IF _row.fenced_on IS DISTINCT FROM pg_postmaster_start_time() THEN PERFORM lift_fences(_queue); END IF;
    IF _ids IS NULL AND (_max IS NOT NULL OR _row.window_ends > _now OR _row.max_active IS NOT NULL) THEN
      SELECT * INTO _row FROM queues WHERE queue = _queue FOR NO KEY UPDATE;
    END IF;
    IF _row.window_ends <= _now THEN _row.window_used := 0; END IF;
    IF _ids IS NOT NULL THEN
      _got := grant_by_id(_queue, _session, _seq, _ids, _count, _by, _timed, _clock, _change, _inline);
      _taken := _got._taken;
      _change := _got._change;
      _jobs := _got._jobs;
      _more := _got._cut;
      _left := _look.waiting + _change.waiting + _change.prioritized;
      IF _due <= _now THEN _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1); END IF;
    ELSIF _row.limited_until <= _now THEN
      _room := greatest(0, least(_count, coalesce(_max - _row.window_used, _count)));
    END IF;
  END IF;
  IF _alive AND _seq > _last AND _ids IS NULL AND _count > 0 AND _due <= _now THEN
    -- Whether there is room or not: a due job that stayed delayed would look claimable by time alone.
    _change := promote_due(_queue, _now, _change);
    _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1);
    _look.keyed :=
      -- include: any-keyed-alive
    ;
    _look.in_line := false;
    _left := _look.waiting + _change.waiting + _change.prioritized;
  END IF;
  IF _room > 0 THEN
    IF _row.max_active IS NOT NULL THEN
      -- All claims of the queue wait here for one another, so that each counts what the others have taken.
      _room := least(
        _room, room_under_cap(_queue, _session, _row.max_active, (SELECT active FROM counts_of(_queue)) + _change.active, _now)
      );
    END IF;
    _left := _look.waiting + _change.waiting + _change.prioritized;
  END IF;
  IF _room > 0 THEN
    IF _look.keyed THEN
      _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _change, _inline);
      _soon := _got._soon;
    ELSE
      _got := grant_locks(
        _queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _look.in_line, _change, NULL, _inline
      );
    END IF;
    _taken := _got._taken;
    _left := _look.waiting + (_got._change).waiting + (_got._change).prioritized;
    _more := _got._cut;
    IF _taken < _room AND _left > 0 AND NOT _more THEN
      -- Something lies below the head, because its transaction committed late; or was changed while it was being locked.
      _got := grant_locks(
        _queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, false, _got._change, _got._jobs, _inline, _got._bytes,
        true
      );
      _more := _got._cut;
      _taken := _taken + _got._taken;
      _left := _left - _got._taken;
    END IF;
    _change := _got._change;
    _jobs := _got._jobs;
    -- One in ten claims that find too little also searches the ranges that seemed dead: a row may have been committed there late.
    IF _taken < _room AND _left > 0 AND NOT _more
        AND (random() < 0.1 AND EXISTS (SELECT FROM dead_ranges WHERE queue = _queue)) THEN
      _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, _change, _inline, true);
      _taken := _taken + _got._taken;
      _left := _left - _got._taken;
      _change := _got._change;
      _jobs := concat_ws(',', _jobs, _got._jobs);
      _more := _got._cut;
    END IF;
    IF _soon AND _taken < _room THEN _due := least(_due, _now + 5); END IF;
  END IF;
  IF _taken > 0 AND (_max IS NOT NULL OR _row.window_ends > _now) THEN
    -- The window opens with the first claim in it, not with the first look.
    UPDATE queues
    SET window_ends = CASE WHEN window_ends > _now THEN window_ends ELSE ceil(_clock + _window) END,
      window_used = CASE WHEN window_ends > _now THEN window_used ELSE 0 END + _taken, window_max = coalesce(_max, window_max)
    WHERE queue = _queue RETURNING * INTO _row;
  END IF;
  _reply := claim_reply(
    _jobs, _alive, _row.paused, limited_ms(_row, _max, _now), _due, _now, _left <= 0 AND coalesce(_due > _now, true), _more
  );
END
$body$;
