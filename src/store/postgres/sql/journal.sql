-- The journal: the changes that calls write in one row each, and their folding into the row of the queue.

-- name: no_change
-- Returns an empty row of the journal, in which a call gathers its changes. _minute: the minute of the jobs that it finishes, if they
-- count.
-- Without it, the sums of finished jobs stay null.
-- Called by: many.
CREATE FUNCTION no_change(_queue int, _minute int DEFAULT NULL) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  RETURN ROW (_queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, _minute, _minute * 0, _minute * 0, NULL)::journal;
END
$body$;

-- name: fold
-- Applies the journal (pending changes) to the queue's row and its events: folding.
-- A call that changes a queue writes one row to the journal and locks nothing for it. Numbering events at that moment would need a lock
-- until the commit: all writers of a queue would wait for one another's fsync, and for every transaction in which a user adds a job. So
-- events are numbered when they are read, or when enough rows have gathered. A fold holds the lock of the queue's row and numbers all
-- journal rows that are visible by then, in their order. A row that commits later gets later numbers, so no reader passes an event that
-- is still to come. A row that depends on another one has a larger journal number, and is never visible without it.
-- For the same reason the counts after each of these rows are true ones, and show exactly where the queue was drained.
-- The caller holds the lock of the queue's row.
-- Called by: events_after, keep_metrics, trim_events, try_fold.
-- States: 2 delayed.
-- HEADED_MS = 200: how often the heads of the lists are searched. A job whose transaction committed late may lie below a head for this
--   long.
-- EVENTS_KEPT = 10000
-- TRIM_FROM = 11000: the log may exceed EVENTS_KEPT by 1000 events, so that trimming is rare.
-- WEIGH_EVERY = 524288: the bytes of the log are summed once in about this many bytes of new events: the sum takes 3 ms over 10,000 rows.
-- EVENTS_BYTES_KEPT = 8388608
CREATE FUNCTION fold(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _row queues;
  _sum record;
  _due boolean := false;
  _now bigint := floor(clock_ms());
  _since float8;
  _heading boolean;
  _passed boolean;
BEGIN
  SELECT * INTO _row FROM queues WHERE queue = _queue;
  _heading := _row.headed_at < _now - 200;
  IF _heading THEN
    _passed := (
      SELECT NOT EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'relation' AND relation = 'journal'::regclass
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND virtualtransaction = ANY (d.journal_writers)
      )
      FROM dead_ranges d WHERE d.queue = _queue
    );
  END IF;
  IF EXISTS (SELECT FROM journal WHERE journal.queue = _row.queue AND journal.number >= _row.journal_from AND finishes > 0) THEN
    _due := coalesce((SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1) <= _now, false);
  END IF;
  WITH folded AS (
    DELETE FROM journal WHERE journal.queue = _row.queue AND journal.number >= _row.journal_from RETURNING *
  ), counted AS (
    SELECT *,
      finishes > 0 AND NOT _due AND _row.waiting + _row.prioritized + _row.active
        + sum(waiting + prioritized + active) OVER (ORDER BY number) = 0 AS drained
    FROM folded
  ), numbered AS (SELECT *, sum(events + drained::int) OVER (ORDER BY number) AS upto FROM counted), told AS (
    INSERT INTO events (queue, first, last, body)
    SELECT _queue, _row.last_event + upto - events - drained::int + 1, _row.last_event + upto,
      CASE WHEN drained THEN body || ',["drained"]' ELSE body END
    FROM numbered WHERE events > 0
  )
  SELECT count(*) AS rows, sum(waiting) AS waiting, sum(prioritized) AS prioritized, sum(delayed) AS delayed,
    sum(active) AS active, sum(completed) AS completed, sum(failed) AS failed,
    coalesce(sum(parents), 0) AS parents, max(upto) AS upto, coalesce(sum(octet_length(body)), 0) AS bytes,
    json_agg(json_build_array(minute, completions, failures)) FILTER (WHERE minute IS NOT NULL) AS finished
  INTO _sum FROM numbered;
  IF _sum.rows = 0 THEN RETURN; END IF;
  UPDATE queues
  SET waiting = waiting + _sum.waiting, prioritized = prioritized + _sum.prioritized, delayed = delayed + _sum.delayed,
    active = active + _sum.active, completed = completed + _sum.completed, failed = failed + _sum.failed, parents = parents + _sum.parents,
    last_event = last_event + _sum.upto
  WHERE queue = _queue RETURNING * INTO _row;
  IF _sum.finished IS NOT NULL AND _row.metric_points IS NOT NULL THEN
    PERFORM count_minutes(_queue, _row.metric_points, _sum.finished);
  END IF;
  IF _row.last_event - _row.first_event >= 11000 THEN PERFORM trim_log(_queue, 10000); END IF;
  IF random() < _sum.bytes / 524288.0 THEN PERFORM trim_bytes(_queue, 8388608); END IF;
  IF _heading THEN
    -- Searches the heads of the lists. The longer this search takes, the less often it is made.
    -- States: 1 waiting, 4 completed, 5 failed.
    -- HEAD_PAUSES = 20: the pause after a search for the heads is at least this many times as long as the search.
    -- LONGEST_PAUSE_MS = 2000: a search that took long because the machine was busy must not cause a long pause.
    _since := clock_ms();
    _row.journal_from := find_dead_ranges(_queue, _row.prioritized > 0, _passed);
    UPDATE queues
    SET journal_from = _row.journal_from,
      head_waiting = coalesce(
        (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= 0 ORDER BY ord LIMIT 1), head_waiting
      ),
      head_completed = coalesce(
        (SELECT ord FROM jobs WHERE queue = _queue AND state >= 4 AND state = 4 ORDER BY ord LIMIT 1), head_completed
      ),
      head_failed = coalesce(
        (SELECT ord FROM jobs WHERE queue = _queue AND state >= 4 AND state = 5 ORDER BY ord LIMIT 1), head_failed
      ),
      headed_at = _now + least(20 * (clock_ms() - _since), 2000)
    WHERE queue = _queue;
  END IF;
END
$body$;

-- name: fold_aside
-- Folds the journal of a queue, if no other transaction is folding. Called by fold.ts beside fast paths that are one statement.
SELECT try_fold(queue) FROM queues WHERE name = :queue

-- name: try_fold
-- Folds the journal of a queue, if no other transaction holds the row of the queue.
-- Called by: many.
CREATE FUNCTION try_fold(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM FROM queues WHERE queue = _queue FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN PERFORM fold(_queue); END IF;
END
$body$;

-- part: note
-- Writes _change to the journal.
IF _change.events > 0 THEN
  INSERT INTO journal (
    queue, waiting, prioritized, delayed, active, completed, failed, finishes, events, body, minute, completions, failures, parents
  )
  VALUES (
    _change.queue, _change.waiting, _change.prioritized, _change.delayed, _change.active, _change.completed, _change.failed,
    _change.finishes, _change.events, _change.body, _change.minute, _change.completions, _change.failures, _change.parents
  );
END IF;

-- part: fold-sometimes
-- Folds the journal in one of 32 calls, if no other transaction is folding.
IF random() < 0.03125 THEN PERFORM try_fold(_queue); END IF;

-- part: journal-sums
-- The sums of the journal of the queue `q`, as far as fast paths need them.
LATERAL (
  SELECT sum(waiting) AS waiting, sum(prioritized) AS prioritized, sum(delayed) AS delayed FROM journal
  WHERE journal.queue = q.queue AND journal.number >= q.journal_from
) j
