// Operator verbs of a queue: pause, rate limit, cap, clear, requeue, forget. They must never touch a job that is locked.
import type { Cap, Selection } from '../contract/index.js';
import type { StoredState } from '../../job/state.js';
import { FOLD_SOMETIMES, NOTE } from './fold.js';
import type { Server } from './server.js';
import { step, verb } from './sql-function.js';
import { STATE } from './tables.js';
import { UNTOUCHED } from './untouched.js';

/**
 * Up to this many jobs, waiting and delayed jobs are sorted by age. More are taken in the order of the index: otherwise emptying a queue
 * of a million jobs in chunks would sort a million rows for each chunk.
 */
const SORTED_UP_TO = 10_000;

const inIndex = (state: number, index: string, end: string) =>
  `SELECT * FROM (SELECT ctid AS at, added FROM jobs WHERE queue = _queue AND state = ${state} AND added_at <= _latest ORDER BY ${index} ${end}) j`;
const byAge = (states: number[], index: string) =>
  `ARRAY(SELECT at FROM (${states.map((state) => inIndex(state, index, 'OFFSET 0')).join(' UNION ALL ')}) j ORDER BY added LIMIT _limit)`;
const byIndex = (states: number[], index: string) =>
  `ARRAY(SELECT at FROM (${states.map((state) => inIndex(state, index, 'LIMIT _limit')).join(' UNION ALL ')}) j LIMIT _limit)`;
const WAITING = [STATE.waiting, STATE.keyed, STATE.behind];

export const CONTROL_FUNCTIONS =
  verb(
    'pause(_name text, _paused boolean)',
    'text',
    `
DECLARE
  _queue int := queue_of(_name);
  _change journal := no_change(_queue);
BEGIN
  UPDATE queues SET paused = _paused WHERE queue = _queue AND paused <> _paused;
  IF FOUND THEN
    _change.events := 1;
    _change.body := event(CASE WHEN _paused THEN 'paused' ELSE 'resumed' END, NULL);
    ${NOTE}
  END IF;
  RETURN 'null';
END`,
  ) +
  verb(
    'limit_queue(_name text, _duration float8)',
    'text',
    `
DECLARE
  _queue int := queue_of(_name);
BEGIN
  UPDATE queues SET limited_until = CASE WHEN _duration > 0 THEN ceil(clock_ms() + _duration) ELSE 0 END,
    window_ends = CASE WHEN _duration > 0 THEN window_ends ELSE 0 END
  WHERE queue = _queue;
  RETURN 'null';
END`,
  ) +
  verb(
    'cap_queue(_name text, _most float8)',
    'text',
    `
DECLARE
  -- Not in the statement, which would not see a row that it makes.
  _queue int := queue_of(_name);
BEGIN
  UPDATE queues SET max_active = _most WHERE queue = _queue;
  RETURN 'null';
END`,
  ) +
  // Locks the unlocked jobs of one state, the oldest first.
  step(
    'select_jobs(_queue int, _state smallint, _latest bigint, _limit int)',
    'tid[]',
    `
DECLARE
  _rows tid[];
  _counts record;
BEGIN
  SELECT * INTO _counts FROM counts_of(_queue);
  IF _state >= ${STATE.completed} THEN
    -- Cut here and not by the query, which would go on through all that are younger.
    _rows := ARRAY(SELECT ctid FROM (
      SELECT ctid, finished_on FROM jobs WHERE queue = _queue AND state >= 4 AND state = _state ORDER BY ord LIMIT _limit
    ) j WHERE finished_on <= _latest);
  ELSIF _state = ${STATE.waiting} AND _counts.waiting + _counts.prioritized <= ${SORTED_UP_TO} THEN
    _rows := ${byAge(WAITING, 'priority, ord')};
  ELSIF _state = ${STATE.waiting} THEN
    _rows := ${byIndex(WAITING, 'priority, ord')};
  ELSIF _state = ${STATE.delayed} AND _counts.delayed <= ${SORTED_UP_TO} THEN
    _rows := ${byAge([STATE.delayed], 'due_at, ord')};
  ELSIF _state = ${STATE.delayed} THEN
    _rows := ${byIndex([STATE.delayed], 'due_at, ord')};
  ELSE
    -- Active jobs are locked, all of them.
    RETURN '{}';
  END IF;
  RETURN ARRAY(SELECT ctid FROM jobs WHERE ctid = ANY (_rows) AND greatest(state, ${STATE.waiting}) = _state AND ${UNTOUCHED}
    ORDER BY CASE WHEN _state >= ${STATE.completed} THEN ord ELSE added END FOR UPDATE SKIP LOCKED);
END`,
  ) +
  verb(
    'clear_jobs(_name text, _states smallint[], _age float8, _limit int)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _latest bigint := CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END;
  _state smallint;
  _rows tid[];
  _found text[];
  _plain int;
  _ids text[] := '{}';
  _change journal := no_change(_queue);
BEGIN
  FOREACH _state IN ARRAY _states LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    _rows := select_jobs(_queue, _state, _latest, _limit - cardinality(_ids));
    SELECT array_agg(id), count(*) FILTER (WHERE priority = 0) INTO _found, _plain FROM (
      SELECT id, priority FROM unnest(_rows) WITH ORDINALITY r(at, n), LATERAL (SELECT id, priority FROM jobs WHERE ctid = at OFFSET 0) j ORDER BY n
    ) j;
    CONTINUE WHEN _found IS NULL;
    PERFORM drop_jobs(_queue, _rows);
    _ids := _ids || _found;
    CASE _state
      WHEN ${STATE.waiting} THEN
        _change.waiting := -_plain;
        _change.prioritized := _plain - cardinality(_found);
      WHEN ${STATE.delayed} THEN _change.delayed := -cardinality(_found);
      WHEN ${STATE.completed} THEN _change.completed := -cardinality(_found);
      ELSE _change.failed := -cardinality(_found);
    END CASE;
  END LOOP;
  IF cardinality(_ids) > 0 THEN
    _change.events := 1;
    _change.body := event('cleaned', NULL, json_build_object('count', cardinality(_ids)));
    ${NOTE}
    ${FOLD_SOMETIMES}
  END IF;
  RETURN to_json(_ids);
END`,
  ) +
  // Records the event of a clean that found nothing, or whose jobs were removed by their ids.
  verb(
    'tell_cleaned(_name text, _count int)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _change journal := no_change(_queue);
BEGIN
  IF _queue IS NOT NULL THEN
    _change.events := 1;
    _change.body := event('cleaned', NULL, json_build_object('count', _count));
    ${NOTE}
    ${FOLD_SOMETIMES}
  END IF;
  RETURN '[]';
END`,
  ) +
  verb(
    'requeue(_name text, _states smallint[], _age float8, _limit int)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _latest bigint := CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END;
  _state smallint;
  _moved int := 0;
BEGIN
  FOREACH _state IN ARRAY _states LOOP
    EXIT WHEN _queue IS NULL OR _moved >= _limit;
    CONTINUE WHEN _state = ${STATE.waiting};
    _moved := _moved + send_to_waiting(_queue, _state, select_jobs(_queue, _state, _latest, _limit - _moved));
  END LOOP;
  IF _moved > 0 THEN ${FOLD_SOMETIMES} END IF;
  RETURN _moved;
END`,
  ) +
  // Keeps the counters of events and places: listeners read on from their event id, and jobs that still exist keep their order.
  verb(
    'forget(_name text)',
    'text',
    `
DECLARE
  _queue int;
BEGIN
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF FOUND THEN
    PERFORM fold(_queue);
    PERFORM trim_log(_queue, 0);
    UPDATE queues SET paused = false, limited_until = 0, window_ends = 0, max_active = NULL WHERE queue = _queue;
    PERFORM setval(('ids_' || _queue)::regclass, 1, false);
  END IF;
  RETURN 'null';
END`,
  );

export async function pause(server: Server, queue: string, paused: boolean): Promise<void> {
  await server.call('pause', [queue, paused]);
}

export async function limit(server: Server, queue: string, durationMs: number): Promise<void> {
  await server.call('limit_queue', [queue, durationMs]);
}

export async function cap(server: Server, queue: string, limits: Cap | undefined): Promise<void> {
  await server.call('cap_queue', [queue, limits?.maxActive ?? null]);
}

export function clear(server: Server, queue: string, selection: Selection): Promise<string[]> {
  if (selection.limit === 0) return server.call<string[]>('tell_cleaned', [queue, selection.removed ?? 0]);
  return server.call<string[]>('clear_jobs', [queue, ...selectionArguments(selection)]);
}

export function requeue(server: Server, queue: string, selection: Selection): Promise<number> {
  return server.call<number>('requeue', [queue, ...selectionArguments(selection)]);
}

export async function forget(server: Server, queue: string): Promise<void> {
  await server.call('forget', [queue]);
}

function selectionArguments({ states, olderThanMs, limit: count }: Selection): unknown[] {
  const codes = [...new Set(states)].map((state: StoredState) => STATE[state]);
  return [codes, olderThanMs ?? null, Math.min(count, 2 ** 31 - 1)];
}
