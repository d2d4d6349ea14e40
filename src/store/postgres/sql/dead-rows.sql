-- Dead rows: how claims start behind the rows that nothing sees any more, and pass over rows that another transaction holds.

-- name: untouched
-- Guards against a wait that SKIP LOCKED does not skip. Transaction A has changed a row and commits just when verb B reads the row;
-- transaction C, next in line, has locked it by then. The server follows the row to its new version, and B waits there for C. B may hold
-- rows that C wants. So two verbs with a sound lock order deadlocked, once in 40 runs of a storm, on a machine with more work than cores.
-- Rows that another transaction is changing are therefore left out before the server tries to lock them.
-- `xmax` is the transaction that changed or locked the row last, as the lower half of its number. pg_xact_status needs the whole
-- number.
-- Called by: many.
CREATE FUNCTION untouched(_xmax xid) RETURNS boolean LANGUAGE sql VOLATILE AS $body$
SELECT _xmax = pg_current_xact_id()::xid OR pg_xact_status(
  (pg_current_xact_id()::text::bigint + age(pg_current_xact_id()::xid) - age(_xmax))::text::xid8
) IS DISTINCT FROM 'in progress'
$body$;

-- name: find_dead_ranges
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
-- Called by: fold.
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
    -- Selects the priorities that waiting jobs have or had: those remembered before, of waiting jobs, and of some active jobs.
    -- States: 1 waiting, 3 active.
    -- MOST_PRIORITIES = 32
    -- SAMPLE = 50: how many active jobs are sampled for their priorities.
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
  -- Measures the walk through the dead rows of the journal. Sets from where on it is read, and which transactions write to it.
  _read := pg_stat_get_xact_tuples_returned('journal_pkey'::regclass);
  PERFORM FROM journal WHERE queue = _queue ORDER BY number LIMIT 1;
  IF pg_stat_get_xact_tuples_returned('journal_pkey'::regclass) - _read >= 500 THEN
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
    -- Writes the row of the queue.
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

-- part: dead-variables
-- Variables of functions that start behind dead ranges (find_dead_ranges).
_priorities int[] := '{}';
_heads bigint[] := '{}';
_head_keyed bigint := 0;
_head_freed bigint := 0;

-- part: skip-dead
-- Sets the variables of `dead-variables`. If the queue has no row, nothing is skipped.
IF NOT _whole THEN
  SELECT coalesce(max(priorities), '{}'), coalesce(max(heads), '{}'), coalesce(max(head_keyed), 0), coalesce(max(head_freed), 0)
  INTO _priorities, _heads, _head_keyed, _head_freed FROM dead_ranges WHERE queue = _queue;
END IF;
