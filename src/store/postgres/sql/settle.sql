-- Settles jobs, and claims the next ones in the same call.
-- Called by: settle.ts, settle-children.sql, settle-groups.sql, settle-plain.sql.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
-- _within: the call runs in a transaction of the user, which may stay open. So it holds no rows that calls for other jobs need, if it can:
-- it leaves the row of the queue alone, and notes the places that come free in groups.
-- WEIGH_EVERY = 524288: the bytes of the log are summed once in about this many bytes of new events: the sum takes 3 ms over 10,000 rows.
CREATE FUNCTION settle(
  _name text, _caller text, _seq bigint, _kinds text[], _ids text[], _owners text[], _fences bigint[],
  _texts text[], _stacks text[], _delays float8[], _lifos boolean[], _keep_counts float8[],
  _keep_ages float8[], _session text, _claim_seq bigint, _count int, _job_ids text[], _by text, _timed float8,
  _max float8, _window float8, _inline int DEFAULT 2147483647, _within boolean DEFAULT false
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int;
  _capped boolean;
  _grouped boolean;
  _minute int;
  _results text;
  _remembered boolean := false;
  _same_call boolean := coalesce(_caller = _session AND _seq = _claim_seq, false);
  _alive boolean;
  _last bigint;
  _change journal;
  _got record;
  _claimed text;
  _freed boolean := false;
BEGIN
  SELECT queue, max_active IS NOT NULL, grouped, CASE WHEN metric_points IS NOT NULL THEN _now / 60000 END
  INTO _queue, _capped, _grouped, _minute FROM queues WHERE name = _name;
  IF _queue IS NULL THEN
    _results := repeat('m', cardinality(_ids));
    IF _session IS NOT NULL THEN _claimed := claim_reply(NULL, false, false, 0, NULL, 0, true); END IF;
  ELSE
    -- include: enter-settle-and-claim
    _change := no_change(_queue, _minute);
    -- include: lock-settled
    IF NOT _remembered THEN
      _got := carry_out(
        _queue, _clock, _kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages, _change,
        _grouped AND _job_ids IS NULL AND NOT _within
      );
      _change := _got._change;
      _results := _got._results;
      _freed := _got._freed;
    END IF;
    IF _session IS NOT NULL THEN
      -- include: settle-take
    END IF;
    -- After the claim, which would take its own number for that of a call that was carried out before.
    IF _caller IS NOT NULL AND NOT _remembered THEN
      UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _results WHERE queue = _queue AND id = _caller;
    END IF;
    -- include: note
    IF NOT _within AND random() < 0.03125 + coalesce(octet_length(_change.body), 0) / 524288.0 THEN
      PERFORM try_fold(_queue);
    END IF;
  END IF;
  RETURN '{"results":"' || _results || '","room":' || (_freed OR coalesce(_capped, false))
    || CASE WHEN _grouped THEN ',"grouped":true' ELSE '' END || ',"claimed":' || coalesce(_claimed, 'null')
    || CASE WHEN has_sent() THEN ',"sent":true}' ELSE '}' END;
END
$body$;
