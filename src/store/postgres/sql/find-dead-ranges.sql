-- Remembers where the lists of prioritized and of keyed jobs have no living row.
-- A claim takes the first entries of an index, and leaves dead entries in their place. Dead entries stay as long as any transaction of
-- the server is older than they are, whatever that transaction does. Beside such a transaction, a claim after 60,000 others walked
-- through 60,000 dead entries before it found a job. So stretches that took long to walk through are remembered, and claims start behind
-- them.
-- New rows come behind these stretches, unless a transaction drew its place before and commits late. So a stretch is skipped only as far
-- as places had been drawn at the previous look. A row that commits even later is found by the next look, or by a claim that finds too
-- little (`_whole`).
-- The journal follows a stricter rule: no row of it may ever be skipped, because counts and events depend on it. Its dead rows are
-- skipped only up to a number that is surely passed: every transaction that could have drawn a smaller number had ended before the
-- journal was folded. The server's lock table shows that.
-- Called by: fold.sql.
-- States: -1 behind, 0 keyed, 1 waiting.
-- LONG_WALK = 500: a walk through fewer entries of the index is not worth remembering. The server counts them (track_counts). The time of
--   a walk says less: a fast machine reads 5,000 entries in 0.25 ms, and no bound on time fits all machines.
CREATE FUNCTION find_dead_ranges(_queue int, _prioritized boolean, _passed boolean) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _old dead_ranges;
  _place bigint := (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM places);
  _freed bigint := (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM freed_keys_number_seq);
  _number bigint := (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM journal_number_seq);
  _read bigint;
  _one int;
  _first bigint;
  -- include: dead-variables
  _journal_from bigint := 0;
  _writers text[] := '{}';
  _any boolean := false;
BEGIN
  SELECT * INTO _old FROM dead_ranges WHERE queue = _queue;
  FOR _one IN
    -- include: likely-priorities
  LOOP
    _read := pg_stat_get_xact_tuples_returned('jobs_waiting'::regclass);
    _first := (
      SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = _one AND ord >= 0 ORDER BY priority, ord LIMIT 1
    );
    CONTINUE WHEN pg_stat_get_xact_tuples_returned('jobs_waiting'::regclass) - _read < 500;
    _any := true;
    _priorities := _priorities || _one;
    _heads := _heads || least(coalesce(_first, _place), coalesce(_old.place, 0));
  END LOOP;
  _read := pg_stat_get_xact_tuples_returned('jobs_waiting'::regclass);
  _first := least(
    (SELECT ord FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 AND ord >= 0 ORDER BY priority, ord LIMIT 1),
    (SELECT ord FROM jobs WHERE queue = _queue AND state = -1 AND priority = 0 AND ord >= 0 ORDER BY priority, ord LIMIT 1)
  );
  IF pg_stat_get_xact_tuples_returned('jobs_waiting'::regclass) - _read >= 500 THEN
    _any := true;
    _head_keyed := least(coalesce(_first, _place), coalesce(_old.place, 0));
  END IF;
  _read := pg_stat_get_xact_tuples_returned('freed_keys_pkey'::regclass);
  _first := (SELECT number FROM freed_keys WHERE queue = _queue ORDER BY number LIMIT 1);
  IF pg_stat_get_xact_tuples_returned('freed_keys_pkey'::regclass) - _read >= 500 THEN
    _any := true;
    _head_freed := least(coalesce(_first, _freed), coalesce(_old.freed, 0));
  END IF;
  -- include: dead-journal
  IF _any THEN
    -- include: remember-ranges
  ELSIF _old.queue IS NOT NULL THEN
    DELETE FROM dead_ranges WHERE queue = _queue;
  END IF;
  RETURN _journal_from;
END
$body$;
