// Remembers where the lists of prioritized and of keyed jobs have no living row.
//
// A claim takes the first entries of an index, and leaves dead entries in their place. Dead entries stay as long as any transaction of
// the server is older than they are, whatever that transaction does. Beside such a transaction, a claim after 60,000 others walked
// through 60,000 dead entries before it found a job. So stretches that took long to walk through are remembered, and claims start behind
// them.
// New rows come behind these stretches, unless a transaction drew its place before and commits late. So a stretch is skipped only as far
// as places had been drawn at the previous look. A row that commits even later is found by the next look, or by a claim that finds too
// little (`_whole`).
//
// The journal follows a stricter rule: no row of it may ever be skipped, because counts and events depend on it. Its dead rows are
// skipped only up to a number that is surely passed: every transaction that could have drawn a smaller number had ended before the
// journal was folded. The server's lock table shows that.
import { step } from './sql-function.js';
import { STATE } from './tables.js';

/** A walk that takes less time is not worth remembering. */
const LONG_WALK_MS = 0.3;
/** How many active jobs are sampled for their priorities. Priorities of waiting jobs, and those remembered before, are added. */
const SAMPLE = 50;
const MOST_PRIORITIES = 32;
const LAST_PRIORITY = 2_147_483_647;

/**
 * Variables of functions that start behind dead ranges, and the statement that sets them. If the queue has no row, nothing is skipped.
 */
export const DEAD_VARIABLES = `
  _priorities int[] := '{}';
  _heads bigint[] := '{}';
  _head_keyed bigint := 0;
  _head_freed bigint := 0;`;
export const SKIP_DEAD = `
  IF NOT _whole THEN
    SELECT coalesce(max(priorities), '{}'), coalesce(max(heads), '{}'), coalesce(max(head_keyed), 0), coalesce(max(head_freed), 0)
    INTO _priorities, _heads, _head_keyed, _head_freed FROM dead_ranges WHERE queue = _queue;
  END IF;`;

/**
 * The stretches of prioritized jobs between the dead ones, in their order. For each remembered priority: the jobs of priorities before
 * it, its jobs that were put to the front, and its jobs from its head on. A row comparison as upper bound would not end the index scan.
 */
export const alivePrioritized = (columns: string, more: string, end: string) => {
  const stretches = [
    'priority > alive.after AND priority < alive.priority',
    'priority = alive.priority AND ord < 0',
    'priority = alive.priority AND ord >= alive.head',
  ].map(
    (rows) =>
      `SELECT * FROM (SELECT ${columns} FROM jobs WHERE queue = _queue AND state = ${STATE.waiting} AND ${rows}${more} ORDER BY priority, ord ${end}) s`,
  );
  return `SELECT s.* FROM unnest(0 || _priorities, _priorities || ${LAST_PRIORITY}, _heads || 0::bigint) alive(after, priority, head), LATERAL (
        ${stretches.join('\n        UNION ALL ')}) s`;
};

/** Keyed jobs, or jobs behind them, in their order. */
export const aliveKeyed = (columns: string, state: number, limit: string, head = '_head_keyed') =>
  `SELECT * FROM (SELECT ${columns} FROM jobs WHERE queue = _queue AND state = ${state} AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT ${limit}) s
      UNION ALL SELECT * FROM (
        SELECT ${columns} FROM jobs WHERE queue = _queue AND state = ${state} AND (priority, ord) >= (0, ${head}) ORDER BY priority, ord LIMIT ${limit}) s
      LIMIT ${limit}`;

const firstOrd = (state: number, priority: string) =>
  `(SELECT ord FROM jobs WHERE queue = _queue AND state = ${state} AND priority = ${priority} AND ord >= 0 ORDER BY priority, ord LIMIT 1)`;
const nextPriority = (after: string) =>
  `(SELECT priority FROM jobs WHERE queue = _queue AND state = ${STATE.waiting} AND priority > ${after} ORDER BY priority, ord LIMIT 1)`;
const WRITES_JOURNAL = `locktype = 'relation' AND relation = 'journal'::regclass
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
const reached = (sequence: string) => `(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM ${sequence})`;
const LONG_SINCE = `clock_timestamp() - _since > interval '${LONG_WALK_MS} ms'`;

/**
 * True if every transaction that could have drawn a number up to `journal_number` has ended. Evaluate it before the journal is folded.
 */
export const JOURNAL_PASSED = `(SELECT NOT EXISTS (SELECT FROM pg_locks WHERE ${WRITES_JOURNAL} AND virtualtransaction = ANY (d.journal_writers))
    FROM dead_ranges d WHERE d.queue = _queue)`;

/**
 * Returns where the journal's living rows begin, for the row of the queue. `dead_ranges` has the same number for processes of older
 * versions, which read it there.
 */
export const DEAD_RANGE_FUNCTIONS = step(
  'find_dead_ranges(_queue int, _prioritized boolean, _passed boolean)',
  'bigint',
  `
DECLARE
  _old dead_ranges;
  _place bigint := ${reached('places')};
  _freed bigint := ${reached('freed_keys_number_seq')};
  _number bigint := ${reached('journal_number_seq')};
  _since timestamptz;
  _one int;
  _first bigint;
  _priorities int[] := '{}';
  _heads bigint[] := '{}';
  _head_keyed bigint := 0;
  _head_freed bigint := 0;
  _journal_from bigint := 0;
  _writers text[] := '{}';
  _any boolean := false;
BEGIN
  SELECT * INTO _old FROM dead_ranges WHERE queue = _queue;
  FOR _one IN SELECT priority FROM (
      SELECT unnest(_old.priorities) AS priority
      UNION SELECT * FROM (WITH RECURSIVE waiting(priority) AS (
        SELECT ${nextPriority('0')} UNION ALL SELECT ${nextPriority('waiting.priority')} FROM waiting WHERE priority IS NOT NULL
      ) SELECT priority FROM waiting WHERE priority IS NOT NULL LIMIT ${MOST_PRIORITIES}) w
      UNION SELECT priority FROM (
        SELECT priority FROM jobs WHERE queue = _queue AND state = ${STATE.active} AND _prioritized ORDER BY session DESC, fence DESC LIMIT ${SAMPLE}) j WHERE priority > 0
    ) merged ORDER BY priority LIMIT ${MOST_PRIORITIES} LOOP
    _since := clock_timestamp();
    _first := ${firstOrd(STATE.waiting, '_one')};
    CONTINUE WHEN NOT ${LONG_SINCE};
    _any := true;
    _priorities := _priorities || _one;
    _heads := _heads || least(coalesce(_first, _place), coalesce(_old.place, 0));
  END LOOP;
  _since := clock_timestamp();
  _first := least(${firstOrd(STATE.keyed, '0')}, ${firstOrd(STATE.behind, '0')});
  IF ${LONG_SINCE} THEN
    _any := true;
    _head_keyed := least(coalesce(_first, _place), coalesce(_old.place, 0));
  END IF;
  _since := clock_timestamp();
  _first := (SELECT number FROM freed_keys WHERE queue = _queue ORDER BY number LIMIT 1);
  IF ${LONG_SINCE} THEN
    _any := true;
    _head_freed := least(coalesce(_first, _freed), coalesce(_old.freed, 0));
  END IF;
  _since := clock_timestamp();
  PERFORM FROM journal WHERE queue = _queue ORDER BY number LIMIT 1;
  IF ${LONG_SINCE} THEN
    _any := true;
    _journal_from := CASE WHEN _passed THEN _old.journal_number + 1 ELSE coalesce(_old.journal_from, 0) END;
    _writers := ARRAY(SELECT DISTINCT virtualtransaction FROM pg_locks WHERE ${WRITES_JOURNAL});
  ELSE
    _number := 0;
  END IF;
  IF _any THEN
    INSERT INTO dead_ranges VALUES (_queue, _priorities, _heads, _head_keyed, _head_freed, _place, _freed, _journal_from, _number, _writers)
    ON CONFLICT (queue) DO UPDATE SET (priorities, heads, head_keyed, head_freed, place, freed, journal_from, journal_number, journal_writers)
      = (_priorities, _heads, _head_keyed, _head_freed, _place, _freed, _journal_from, _number, _writers);
  ELSIF _old.queue IS NOT NULL THEN
    DELETE FROM dead_ranges WHERE queue = _queue;
  END IF;
  RETURN _journal_from;
END`,
);
