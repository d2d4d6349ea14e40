// Grants the locks of a claim: delayed jobs that are due become waiting, and waiting jobs get their locks, in order or by their ids.
// Claims (claim.ts) call it under the locks of their caller and session. It skips rows that other transactions hold, except rows that are
// named by id.
import { REPLY_BYTES } from '../budget.js';
import { ALL_INLINE, CLAIMED_ARRAYS, CLAIMED_COLUMNS, WAITING_SIZE } from './job-row.js';
import { alivePrioritized, DEAD_VARIABLES, SKIP_DEAD } from './dead-ranges.js';
import { isTaken, TO_WAITING, WAITS } from './key.js';
import { jobOf, lockJobs } from './lookup.js';
import { step } from './sql-function.js';
import { STATE } from './tables.js';
import { UNTOUCHED } from './untouched.js';

/** How many delayed jobs one claim moves to waiting. */
const PROMOTED_AT_ONCE = 500;

export const FIRST_DUE = `(SELECT due_at FROM jobs WHERE queue = _queue AND state = ${STATE.delayed} ORDER BY due_at LIMIT 1)`;

// Three stretches of one index, read one after the other as far as needed: jobs that were put to the front, jobs from the head on, and
// jobs with a priority (which has its own stretches, see dead-ranges.ts).
export const stretch = (columns: string, rows: string, order: string, end: string) =>
  `SELECT * FROM (
        SELECT ${columns} FROM jobs WHERE queue = _queue AND state = ${STATE.waiting} AND ${rows} ORDER BY ${order} ${end}) s`;
const stretches = (columns: string, more: string, end: string) =>
  [
    stretch(columns, `priority = 0 AND ord < 0${more}`, 'ord', end),
    stretch(columns, `priority = 0 AND ord >= _head${more}`, 'ord', end),
    alivePrioritized(columns, more, end),
  ].join('\n      UNION ALL ');
const seen = (columns: string, limit: string) => stretches(columns, '', `LIMIT ${limit}`);
/** Locks up to `limit` rows that no other transaction holds. */
export const lockedUpTo = (limit: string) => `LIMIT ${limit} FOR UPDATE SKIP LOCKED`;
const locked = (columns: string, limit: string) => stretches(columns, ` AND ${UNTOUCHED}`, lockedUpTo(limit));

/** The location of a waiting job, and its bytes. */
const PLACE = `ctid AS at, ${WAITING_SIZE} AS size`;
/**
 * The rows of `waiting`, in their order, with fences for those that fit into a reply of which `used` bytes are used. Rows that do not fit
 * stay locked until the commit. That is soon: a claim moves no payloads, and its caller requests fewer jobs the next time (fitting.ts).
 */
const fenced = (waiting: string, used = '0') => `
    SELECT at, size, CASE WHEN upto + ${used} <= ${REPLY_BYTES} OR (upto = size AND ${used} = 0) THEN nextval('fences') END AS fence
    FROM (SELECT at, size, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM (
      ${waiting}
    ) waiting) waiting`;
/** True if a row of `next`, which `fenced` selects, did not fit. */
const ANY_UNFENCED = 'EXISTS (SELECT FROM next WHERE fence IS NULL)';

/** Grants the locks of the rows whose locations `waiting` returns as `at`, in their order. */
const grant = (waiting: string, used = '0') => `
  WITH next AS (${fenced(waiting, used)}
  ), taken AS (
    UPDATE jobs SET state = ${STATE.active}, session = _session, fence = next.fence, claim_seq = _seq, processed_on = floor(_clock),
      processed_by = _by, ends_at = ceil(_clock + _timed), timed = _timed IS NOT NULL, attempts_started = attempts_started + 1
    FROM next WHERE jobs.ctid = next.at AND next.fence IS NOT NULL RETURNING ${CLAIMED_COLUMNS}, next.size
  )
  SELECT count(*), count(*) FILTER (WHERE priority = 0), ${CLAIMED_ARRAYS}, event('active', array_agg(id)), coalesce(sum(size), 0), ${ANY_UNFENCED}
  INTO _taken, _plain, _rows, _body, _bytes, _cut FROM (SELECT * FROM taken ORDER BY fence) taken;
  IF _taken > 0 THEN
    _jobs := concat_ws(',', _jobs, _rows);
    _change.active := _change.active + _taken;
    _change.waiting := _change.waiting - _plain;
    _change.prioritized := _change.prioritized - _taken + _plain;
    _change.events := _change.events + _taken;
    _change.body := concat_ws(',', _change.body, _body);
  END IF;`;

export const GRANT_FUNCTIONS =
  step(
    'promote_due(_queue int, _now bigint, _change journal)',
    'journal',
    `
BEGIN
  RETURN promote(_queue, ARRAY(
    SELECT ctid FROM jobs WHERE queue = _queue AND state = ${STATE.delayed} AND due_at <= _now AND ${UNTOUCHED}
    ORDER BY due_at, ord LIMIT ${PROMOTED_AT_ONCE} FOR UPDATE SKIP LOCKED), _change);
END`,
  ) +
  // Moves delayed jobs, which the caller has locked, to waiting, in the given order.
  step(
    'promote(_queue int, _due tid[], INOUT _change journal)',
    'journal',
    `
DECLARE
  _base bigint := nextval('places');
  _sum record;
BEGIN
  WITH promoted AS (
    UPDATE jobs SET ${TO_WAITING}, ord = _base + due.n, delay = 0, due_at = NULL
    FROM unnest(_due) WITH ORDINALITY due(at, n) WHERE jobs.ctid = due.at RETURNING due.n, id, priority
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain,
    event('waiting', array_agg(id ORDER BY n), '{"prev":"delayed"}') AS body
  INTO _sum FROM promoted;
  IF _sum.jobs = 0 THEN RETURN; END IF;
  _change.delayed := _change.delayed - _sum.jobs;
  _change.waiting := _change.waiting + _sum.plain;
  _change.prioritized := _change.prioritized + _sum.jobs - _sum.plain;
  _change.events := _change.events + _sum.jobs;
  _change.body := concat_ws(',', _change.body, _sum.body);
END`,
  ) +
  // `_in_line`: no job was put to the front and none has a priority, so that one stretch is enough. `_used`: bytes of the jobs granted
  // before.
  // `_cut`: it stopped because the reply is full.
  step(
    `grant_locks(_queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int, _in_line boolean,
       INOUT _change journal, INOUT _jobs text, OUT _taken int, OUT _bytes bigint, OUT _cut boolean, _inline int DEFAULT ${ALL_INLINE},
       _used bigint DEFAULT 0, _whole boolean DEFAULT false)`,
    'record',
    `
DECLARE${DEAD_VARIABLES}
  _plain int;
  _rows text;
  _body text;
BEGIN
  IF _in_line THEN
    ${grant(stretch(PLACE, `priority = 0 AND ord >= _head AND ${UNTOUCHED}`, 'ord', lockedUpTo('_room')), '_used')}
  ELSE
    ${SKIP_DEAD}
    ${grant(
      `${locked(PLACE, '_room')}
      LIMIT _room`,
      '_used',
    )}
  END IF;
END`,
  ) +
  // The same for queues where jobs with a key wait too. It decides which jobs come first before it locks any row, so that no row is
  // locked in vain.
  step(
    `grant_in_turn(_queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
       INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _soon boolean, OUT _bytes bigint, OUT _cut boolean,
       _inline int DEFAULT ${ALL_INLINE}, _whole boolean DEFAULT false)`,
    'record',
    `
DECLARE${DEAD_VARIABLES}
  _first record;
  _chosen record;
  _freed boolean;
  _plain int;
  _rows text;
  _body text;
BEGIN
  ${SKIP_DEAD}
  _freed := show_freed(_queue, _head_freed, _head_keyed);
  _first := first_of_keys(_queue, _room, _head_keyed);
  SELECT count(*) AS jobs, count(*) FILTER (WHERE id IS NULL) AS plain, array_agg(id) FILTER (WHERE id IS NOT NULL) AS ids INTO _chosen FROM (
    SELECT * FROM (
      ${seen('priority, ord, NULL::text AS id', '_room')}
      UNION ALL SELECT j.* FROM unnest(_first._ids) o(id), ${jobOf('o.id', 'priority, ord, id', WAITS)} j
    ) merged ORDER BY priority, ord LIMIT _room
  ) chosen;
  _soon := _freed OR _first._soon;
  ${grant(`SELECT at, size FROM (
        ${locked(`${PLACE}, priority, ord`, '_chosen.plain')}
        UNION ALL SELECT j.* FROM unnest(_chosen.ids) o(id), LATERAL (
          SELECT ${PLACE}, priority, ord FROM jobs WHERE queue = _queue AND id = o.id AND ${WAITS} AND ${UNTOUCHED} FOR UPDATE SKIP LOCKED) j
      ) merged ORDER BY priority, ord LIMIT _room`)}
  _soon := _soon OR _taken < _chosen.jobs AND NOT _cut;
END`,
  ) +
  // Grants the locks of the named jobs that wait, in their order.
  step(
    `grant_by_id(_queue int, _session text, _seq bigint, _ids text[], _count int, _by text, _timed float8, _clock float8,
       INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _cut boolean, _inline int DEFAULT ${ALL_INLINE})`,
    'record',
    `
DECLARE
  _bytes bigint;
  _due tid[];
  _one record;
  _chosen text[] := '{}';
  _keys text[] := '{}';
  _plain int;
  _rows text;
  _body text;
BEGIN
  ${lockJobs('_ids')};
  PERFORM lock_keys_of(_queue, _ids);
  _due := ARRAY(
    SELECT j.at FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY o(id, n) GROUP BY id) o,
      ${jobOf('o.id', 'ctid AS at', `state + 0 = ${STATE.delayed} AND due_at <= floor(_clock)`)} j
    ORDER BY o.n);
  IF cardinality(_due) > 0 THEN _change := promote(_queue, _due, _change); END IF;
  FOR _one IN SELECT j.* FROM unnest(_ids) WITH ORDINALITY o(id, n), ${jobOf('o.id', 'id, lock_key', WAITS)} j ORDER BY o.n LOOP
    EXIT WHEN cardinality(_chosen) >= _count;
    CONTINUE WHEN _one.id = ANY (_chosen);
    IF _one.lock_key IS NOT NULL THEN
      CONTINUE WHEN _one.lock_key = ANY (_keys) OR ${isTaken('_one.lock_key')};
      _keys := _keys || _one.lock_key;
    END IF;
    _chosen := _chosen || _one.id;
  END LOOP;
  ${grant(`SELECT j.* FROM unnest(_chosen) WITH ORDINALITY o(id, n), ${jobOf('o.id', PLACE)} j ORDER BY o.n`)}
END`,
  );
