// Applies the journal (pending changes) to the queue's row and its events: folding.
//
// A call that changes a queue writes one row to the journal and locks nothing for it. Numbering events at that moment would need a lock
// until the commit: all writers of a queue would wait for one another's fsync, and for every transaction in which a user adds a job. So
// events are numbered when they are read, or when enough rows have gathered. A fold holds the lock of the queue's row and numbers all
// journal rows that are visible by then, in their order. A row that commits later gets later numbers, so no reader passes an event that
// is still to come. A row that depends on another one has a larger journal number, and is never visible without it.
// For the same reason the counts after each of these rows are true ones, and show exactly where the queue was drained.
import { JOURNAL_PASSED } from './dead-ranges.js';
import { journalOf } from './journal-rows.js';
import { EVENTS_BYTES_KEPT, SHORT_VALUE_BYTES } from '../budget.js';
import { EVENTS_KEPT } from '../contract/index.js';
import type { Server } from './server.js';
import { expression, step } from './sql-function.js';
import { STATE } from './tables.js';

/** One of this many calls folds, if no other transaction is folding. */
const FOLD_EVERY = 32;
/** The log may exceed EVENTS_KEPT by this many events, so that trimming is rare. */
const TRIM_EVERY = 1000;
/** The bytes of the log are summed once in about this many bytes of new events: the sum takes 3 ms over 10,000 rows. */
const WEIGH_EVERY = 512 * 1024;
/** How often the heads of the lists are searched. A job whose transaction committed late may lie below a head for this long. */
const HEADED_MS = 200;
/** The pause after a search for the heads is at least this many times as long as the search. */
const HEAD_PAUSES = 20;
/** A search that took long because the machine was busy must not cause a long pause. */
const LONGEST_PAUSE_MS = 2000;

const firstPlace = (state: number, more = '') =>
  `(SELECT ord FROM jobs WHERE queue = _queue AND ${state >= STATE.completed ? 'state >= 4 AND ' : ''}state = ${state} ${more} ORDER BY ord LIMIT 1)`;

/** Writes _change to the journal. */
export const NOTE = `
  IF _change.events > 0 THEN
    INSERT INTO journal (queue, waiting, prioritized, delayed, active, completed, failed, finishes, events, body)
    VALUES (_change.queue, _change.waiting, _change.prioritized, _change.delayed, _change.active, _change.completed, _change.failed,
      _change.finishes, _change.events, _change.body);
  END IF;`;

export const FOLD_SOMETIMES = `IF random() < ${1 / FOLD_EVERY} THEN PERFORM try_fold(_queue); END IF;`;

/** The same after events that may be large: rows that are not folded yet take space beside those that the log keeps. */
export const FOLD_SOMETIMES_OR_LARGE = `IF random() < ${1 / FOLD_EVERY} + coalesce(octet_length(_change.body), 0) / ${WEIGH_EVERY}.0 THEN
      PERFORM try_fold(_queue);
    END IF;`;

/** Timeout of a fold that runs aside. */
const FOLD_MS = 3000;
const FOLD_ALONE = 'SELECT try_fold(queue) FROM queues WHERE name = $1';

/** FOLD_SOMETIMES for a call that is one statement. The fold runs aside, so the caller does not wait for it. */
export function foldAside(server: Server, queue: string): void {
  if (Math.random() < 1 / FOLD_EVERY) void server.askShort('fold', FOLD_ALONE, [queue], FOLD_MS).catch(() => undefined);
}

export const FOLD_FUNCTIONS =
  // Returns a group of events of one name: [name, job ids, fields]. A field is an array with a value for each job, or one value for all.
  expression(
    'event(_name text, _ids text[], _fields json DEFAULT NULL)',
    'text',
    'STABLE',
    `json_build_array(_name, _ids, _fields)::text`,
  ) +
  step(
    'no_change(_queue int)',
    'journal',
    `
BEGIN
  RETURN ROW (_queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL)::journal;
END`,
  ) +
  step(
    'try_fold(_queue int)',
    'void',
    `
BEGIN
  PERFORM FROM queues WHERE queue = _queue FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN PERFORM fold(_queue); END IF;
END`,
  ) +
  // The caller holds the lock of the queue's row.
  step(
    'fold(_queue int)',
    'void',
    `
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
  _heading := _row.headed_at < _now - ${HEADED_MS};
  IF _heading THEN _passed := ${JOURNAL_PASSED}; END IF;
  IF EXISTS (SELECT FROM ${journalOf('_row')} AND finishes > 0) THEN
    _due := coalesce((SELECT due_at FROM jobs WHERE queue = _queue AND state = ${STATE.delayed} ORDER BY due_at LIMIT 1) <= _now, false);
  END IF;
  WITH folded AS (
    DELETE FROM ${journalOf('_row')} RETURNING *
  ), counted AS (
    SELECT *, finishes > 0 AND NOT _due AND _row.waiting + _row.prioritized + _row.active
      + sum(waiting + prioritized + active) OVER (ORDER BY number) = 0 AS drained FROM folded
  ), numbered AS (
    SELECT *, sum(events + drained::int) OVER (ORDER BY number) AS upto FROM counted
  ), told AS (
    INSERT INTO events (queue, first, last, body)
    SELECT _queue, _row.last_event + upto - events - drained::int + 1, _row.last_event + upto,
      CASE WHEN drained THEN body || ',["drained"]' ELSE body END
    FROM numbered WHERE events > 0
  )
  SELECT count(*) AS rows, sum(waiting) AS waiting, sum(prioritized) AS prioritized, sum(delayed) AS delayed, sum(active) AS active,
    sum(completed) AS completed, sum(failed) AS failed, max(upto) AS upto,
    coalesce(sum(octet_length(body)), 0) AS bytes
  INTO _sum FROM numbered;
  IF _sum.rows = 0 THEN RETURN; END IF;
  UPDATE queues SET waiting = waiting + _sum.waiting, prioritized = prioritized + _sum.prioritized, delayed = delayed + _sum.delayed,
    active = active + _sum.active, completed = completed + _sum.completed, failed = failed + _sum.failed, last_event = last_event + _sum.upto
  WHERE queue = _queue RETURNING * INTO _row;
  IF _row.last_event - _row.first_event >= ${EVENTS_KEPT + TRIM_EVERY} THEN PERFORM trim_log(_queue, ${EVENTS_KEPT}); END IF;
  IF random() < _sum.bytes / ${WEIGH_EVERY}.0 THEN PERFORM trim_bytes(_queue, ${EVENTS_BYTES_KEPT}); END IF;
  IF _heading THEN
    _since := clock_ms();
    _row.journal_from := find_dead_ranges(_queue, _row.prioritized > 0, _passed);
    UPDATE queues SET
      journal_from = _row.journal_from,
      head_waiting = coalesce(${firstPlace(STATE.waiting, 'AND priority = 0 AND ord >= 0')}, head_waiting),
      head_completed = coalesce(${firstPlace(STATE.completed)}, head_completed),
      head_failed = coalesce(${firstPlace(STATE.failed)}, head_failed),
      -- What takes long is done the more rarely.
      headed_at = _now + least(${HEAD_PAUSES} * (clock_ms() - _since), ${LONGEST_PAUSE_MS})
    WHERE queue = _queue;
  END IF;
END`,
  ) +
  // Returns the events of a row without their long values.
  step(
    'light_body(_body text)',
    'text',
    `
BEGIN
  RETURN (SELECT string_agg(CASE WHEN json_typeof(g->2->field) = 'array' THEN
      json_build_array(g->0, g->1, (
        SELECT json_build_object(field, json_agg(CASE WHEN octet_length(v) <= ${SHORT_VALUE_BYTES} THEN v END ORDER BY n),
          'large', json_agg(CASE WHEN v IS NULL OR octet_length(v) > ${SHORT_VALUE_BYTES} THEN 1 END ORDER BY n))
        FROM json_array_elements_text(g->2->field) WITH ORDINALITY e(v, n)))::text
    ELSE g::text END, ',' ORDER BY i)
    FROM (SELECT g, i, CASE g->>0 WHEN 'completed' THEN 'returnvalue' WHEN 'progress' THEN 'data' END AS field
      FROM json_array_elements(('[' || _body || ']')::json) WITH ORDINALITY t(g, i)) groups);
END`,
  ) +
  // Trims the oldest values first, then the oldest events. The newest event stays unchanged.
  step(
    'trim_bytes(_queue int, _keep bigint)',
    'void',
    `
DECLARE
  _newest bigint := (SELECT last_event FROM queues WHERE queue = _queue);
  _last bigint;
  _row record;
  _light text;
  _over bigint := (SELECT sum(octet_length(body)) - _keep FROM events WHERE queue = _queue);
BEGIN
  IF _over IS NULL OR _over <= 0 THEN RETURN; END IF;
  FOR _row IN SELECT first, body FROM events WHERE queue = _queue AND last < _newest
    AND octet_length(body) > (last - first + 1) * ${2 * SHORT_VALUE_BYTES} ORDER BY first LOOP
    _light := light_body(_row.body);
    UPDATE events SET body = _light WHERE queue = _queue AND first = _row.first;
    _over := _over - octet_length(_row.body) + octet_length(_light);
    IF _over <= 0 THEN RETURN; END IF;
  END LOOP;
  SELECT last INTO _last FROM (
    SELECT last, sum(octet_length(body)) OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM (
      SELECT last, body FROM events WHERE queue = _queue ORDER BY first DESC) e
  ) e WHERE upto > _keep LIMIT 1;
  IF FOUND THEN PERFORM trim_log(_queue, greatest(1, _newest - _last)); END IF;
END`,
  ) +
  // Returns how many events were trimmed. The row that holds the first event that stays is kept whole; readers start inside it.
  step(
    'trim_log(_queue int, _keep double precision)',
    'bigint',
    `
DECLARE
  _before bigint;
  _first bigint;
BEGIN
  SELECT first_event, least(last_event + 1, greatest(first_event, last_event - _keep + 1)) INTO _before, _first FROM queues WHERE queue = _queue;
  IF _first > _before THEN
    DELETE FROM events WHERE queue = _queue AND first < _first AND last < _first;
    UPDATE queues SET first_event = _first WHERE queue = _queue;
  END IF;
  RETURN _first - _before;
END`,
  );
