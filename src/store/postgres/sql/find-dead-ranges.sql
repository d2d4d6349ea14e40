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
-- States: -1 behind, 0 keyed, 1 waiting, 3 active.
-- MOST_PRIORITIES = 32
-- SAMPLE = 50: how many active jobs are sampled for their priorities. Priorities of waiting jobs, and those remembered before, are added.
-- LONG_WALK_MS = 0.3: a walk that takes less time is not worth remembering.
CREATE FUNCTION find_dead_ranges(_queue int, _prioritized boolean, _passed boolean) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _old dead_ranges;
  _place bigint := (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM places);
  _freed bigint := (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM freed_keys_number_seq);
  _number bigint := (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM journal_number_seq);
  _since timestamptz;
  _one int;
  _first bigint;
  -- include: dead-variables
  _journal_from bigint := 0;
  _writers text[] := '{}';
  _any boolean := false;
BEGIN
  SELECT * INTO _old FROM dead_ranges WHERE queue = _queue;
  FOR _one IN
    SELECT priority FROM (
      SELECT unnest(_old.priorities) AS priority
      UNION
      SELECT * FROM (
        WITH RECURSIVE waiting(priority) AS (
          SELECT (SELECT priority FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority, ord LIMIT 1)
          UNION ALL
          SELECT (
            SELECT priority FROM jobs WHERE queue = _queue AND state = 1 AND priority > waiting.priority
            ORDER BY priority, ord LIMIT 1
          )
          FROM waiting WHERE priority IS NOT NULL
        )
        SELECT priority FROM waiting WHERE priority IS NOT NULL LIMIT 32
      ) w
      UNION
      SELECT priority FROM (
        SELECT priority FROM jobs WHERE queue = _queue AND state = 3 AND _prioritized ORDER BY session DESC, fence DESC LIMIT 50
      ) j
      WHERE priority > 0
    ) merged
    ORDER BY priority LIMIT 32
  LOOP
    _since := clock_timestamp();
    _first := (
      SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = _one AND ord >= 0 ORDER BY priority, ord LIMIT 1
    );
    CONTINUE WHEN NOT clock_timestamp() - _since > interval '0.3 ms';
    _any := true;
    _priorities := _priorities || _one;
    _heads := _heads || least(coalesce(_first, _place), coalesce(_old.place, 0));
  END LOOP;
  _since := clock_timestamp();
  _first := least(
    (SELECT ord FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 AND ord >= 0 ORDER BY priority, ord LIMIT 1),
    (SELECT ord FROM jobs WHERE queue = _queue AND state = -1 AND priority = 0 AND ord >= 0 ORDER BY priority, ord LIMIT 1)
  );
  IF clock_timestamp() - _since > interval '0.3 ms' THEN
    _any := true;
    _head_keyed := least(coalesce(_first, _place), coalesce(_old.place, 0));
  END IF;
  _since := clock_timestamp();
  _first := (SELECT number FROM freed_keys WHERE queue = _queue ORDER BY number LIMIT 1);
  IF clock_timestamp() - _since > interval '0.3 ms' THEN
    _any := true;
    _head_freed := least(coalesce(_first, _freed), coalesce(_old.freed, 0));
  END IF;
  _since := clock_timestamp();
  PERFORM FROM journal WHERE queue = _queue ORDER BY number LIMIT 1;
  IF clock_timestamp() - _since > interval '0.3 ms' THEN
    _any := true;
    _journal_from := CASE WHEN _passed THEN _old.journal_number + 1 ELSE coalesce(_old.journal_from, 0) END;
    _writers := ARRAY(
      SELECT DISTINCT virtualtransaction FROM pg_locks
      WHERE locktype = 'relation' AND relation = 'journal'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    );
  ELSE
    _number := 0;
  END IF;
  IF _any THEN
    INSERT INTO dead_ranges
    VALUES (_queue, _priorities, _heads, _head_keyed, _head_freed, _place, _freed, _journal_from, _number, _writers)
    ON CONFLICT (queue) DO UPDATE
    SET (priorities, heads, head_keyed, head_freed, place, freed, journal_from, journal_number, journal_writers) = (
      _priorities, _heads, _head_keyed, _head_freed, _place, _freed, _journal_from, _number, _writers
    );
  ELSIF _old.queue IS NOT NULL THEN
    DELETE FROM dead_ranges WHERE queue = _queue;
  END IF;
  RETURN _journal_from;
END
$body$;
