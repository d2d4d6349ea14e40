-- Claims jobs.
-- If there is nothing to write, it replies without a lock: a look at an empty queue costs no transaction number and no fsync.
-- Called by: claim.ts, claim-plain.sql.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
CREATE FUNCTION claim(
  _name text, _session text, _seq bigint, _count int, _ids text[], _by text, _timed float8, _max float8,
  _window float8, _remember boolean, _inline int DEFAULT 2147483647
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _look record;
  _row queues;
  _limited bigint;
  _any boolean;
  _open boolean;
  _alive boolean;
  _last bigint;
  _change journal;
  _got record;
BEGIN
  IF _queue IS NULL THEN RETURN claim_reply(NULL, false, false, 0, NULL, _now, true); END IF;
  -- One snapshot for all of it: a call must not miss its own first run between two looks.
  -- include: claim-look
  _row := _look.row;
  _limited := limited_ms(_row, coalesce(_row.rate_max, _max), _now);
  _any := _look.waiting OR coalesce(_look.due <= _now, false);
  IF _ids IS NOT NULL THEN
    _open := cardinality(_ids) > 0 AND _any;
  ELSIF _look.due <= _now THEN
    _open := true;
  ELSIF _row.paused OR _limited > 0 THEN
    _open := false;
  ELSE
    _open := _any AND NOT _look.full;
    -- Where jobs wait for their keys or for places in their groups, there may be nothing else.
    IF _open AND (_look.behind OR _row.grouped) THEN
      -- include: any-claimable
    END IF;
  END IF;
  IF NOT _look.alive OR _seq > _look.last AND NOT _remember AND (_count = 0 OR NOT _open) THEN
    IF _row.grouped AND NOT _row.paused THEN _look.due := least(_look.due, rest_ends(_queue, _now)); END IF;
    RETURN claim_reply(NULL, _look.alive, _row.paused, _limited, _look.due, _now, NOT _any, false, _look.undone);
  END IF;
  _last := enter_call(_queue, _session);
  -- include: lock-session
  _got := take(
    _queue, _session, _seq, _count, _ids, _by, _timed, _max, _window, _clock, _alive, _last, no_change(_queue), _inline
  );
  _change := _got._change;
  IF _alive AND _seq > _last AND (_got._taken > 0 OR _remember) THEN
    UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = NULL WHERE queue = _queue AND id = _session;
  END IF;
  -- include: note
  -- include: fold-sometimes
  RETURN _got._reply;
END
$body$;
