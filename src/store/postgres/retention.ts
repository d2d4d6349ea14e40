// Removes finished jobs above the retention limits. Each call trims the oldest jobs, at most a bounded number; the next call trims the
// rest. Trimming skips locked rows, because it runs after the call has locked its own jobs.
import { freeKeys, WAITS } from './key.js';
import { step } from './sql-function.js';
import { STATE } from './tables.js';
import { UNTOUCHED } from './untouched.js';

const TRIMMED_AT_ONCE = 1000;

const oldest = (columns: string, limit: string, more = '') =>
  `SELECT ${columns} FROM jobs WHERE queue = _queue AND state >= 4 AND state = _state AND ord >= _head${more} ORDER BY ord LIMIT ${limit}`;

export const RETENTION_FUNCTIONS =
  // Trims the jobs that finished just now (_fresh of them, not in the counts yet) and those that finished before. Returns how many were
  // removed.
  step(
    'retain(_queue int, _state smallint, _fresh bigint, _most float8, _latest float8)',
    'bigint',
    `
DECLARE
  _head bigint;
  _have bigint;
  _gone tid[];
  _went bigint := 0;
BEGIN
  SELECT CASE WHEN _state = ${STATE.completed} THEN head_completed ELSE head_failed END INTO _head FROM queues WHERE queue = _queue;
  IF _most IS NOT NULL THEN
    SELECT _fresh + CASE WHEN _state = ${STATE.completed} THEN completed ELSE failed END INTO _have FROM counts_of(_queue);
    IF _have > _most THEN
      _gone := ARRAY(${oldest('ctid', `least(_have - _most, ${TRIMMED_AT_ONCE})`, ` AND ${UNTOUCHED}`)} FOR UPDATE SKIP LOCKED);
      _went := drop_jobs(_queue, _gone);
    END IF;
  END IF;
  -- Looks at one row as long as none is old enough.
  IF _latest IS NOT NULL AND (${oldest('finished_on', '1')}) <= _latest THEN
    _gone := ARRAY(SELECT ctid FROM (${oldest('ctid, finished_on', String(TRIMMED_AT_ONCE))}) j WHERE finished_on <= _latest);
    _went := _went + drop_jobs(_queue, ARRAY(SELECT ctid FROM jobs WHERE ctid = ANY (_gone) AND state = _state AND ${UNTOUCHED} FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN _went;
END`,
  ) +
  // Removes locked rows with everything that belongs to them. Returns how many.
  step(
    'drop_jobs(_queue int, _rows tid[])',
    'bigint',
    `
DECLARE
  _ids text[];
  _logged text[];
  _keys text[];
BEGIN
  WITH dropped AS (
    DELETE FROM jobs WHERE ctid = ANY (_rows) RETURNING id, log_next, CASE WHEN ${WAITS} THEN lock_key END AS lock_key
  )
  SELECT array_agg(id), array_agg(id) FILTER (WHERE log_next > 0), array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL)
  INTO _ids, _logged, _keys FROM dropped;
  ${freeKeys('_keys')}
  IF _logged IS NOT NULL THEN DELETE FROM logs WHERE queue = _queue AND job = ANY (_logged); END IF;
  RETURN coalesce(cardinality(_ids), 0);
END`,
  );
