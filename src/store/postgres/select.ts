// Changes by selection: removes jobs, or moves them to waiting, list by list. They must never touch a job that is locked.
import { movedList, replyToSelection } from '../change-reply.js';
import type { Change, ChangeReply, Selection } from '../contract/index.js';
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

const inIndex = (rows: string, index: string, end: string) =>
  `SELECT * FROM (SELECT ctid AS at, added FROM jobs WHERE queue = _queue AND ${rows} AND coalesce(processed_on, added_at) <= _latest ORDER BY ${index} ${end}) j`;
const byAge = (rows: string[], index: string) =>
  `ARRAY(SELECT at FROM (${rows.map((part) => inIndex(part, index, 'OFFSET 0')).join(' UNION ALL ')}) j ORDER BY added LIMIT _limit)`;
const byIndex = (rows: string[], index: string) =>
  `ARRAY(SELECT at FROM (${rows.map((part) => inIndex(part, index, 'LIMIT _limit')).join(' UNION ALL ')}) j LIMIT _limit)`;
const waiting = (priority: string) =>
  [STATE.waiting, STATE.keyed, STATE.behind].map((state) => `state = ${state} AND priority ${priority}`);
const DELAYED = [`state = ${STATE.delayed}`];

/** Finds the jobs of a list that is not finished. */
const found = (list: 'waiting' | 'prioritized' | 'delayed', rows: string[], index: string) => `
  ELSIF _list = '${list}' AND _counts.${list} <= ${SORTED_UP_TO} THEN
    _rows := ${byAge(rows, index)};
  ELSIF _list = '${list}' THEN
    _rows := ${byIndex(rows, index)};`;

/** The names of lists, by the state that its jobs have. */
const LISTS_OF_STATES = `'{waiting,delayed,active,completed,failed}'::text[]`;
const LATEST = '(CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint';

export const SELECT_FUNCTIONS =
  // Locks the unlocked jobs of one list, the oldest first.
  step(
    'select_listed(_queue int, _list text, _latest bigint, _limit int)',
    'tid[]',
    `
DECLARE
  _state smallint := coalesce(array_position(${LISTS_OF_STATES}, _list), ${STATE.waiting});
  _rows tid[];
  _counts record;
BEGIN
  SELECT * INTO _counts FROM counts_of(_queue);
  IF _state >= ${STATE.completed} THEN
    -- Cut here and not by the query, which would go on through all that are younger.
    _rows := ARRAY(SELECT ctid FROM (
      SELECT ctid, finished_on FROM jobs WHERE queue = _queue AND state >= 4 AND state = _state ORDER BY ord LIMIT _limit
    ) j WHERE finished_on <= _latest);${found('waiting', waiting('= 0'), 'priority, ord')}${found('prioritized', waiting('> 0'), 'priority, ord')}${found('delayed', DELAYED, 'due_at, ord')}
  ELSE
    -- Active jobs are locked, all of them.
    RETURN '{}';
  END IF;
  RETURN ARRAY(SELECT ctid FROM jobs WHERE ctid = ANY (_rows) AND greatest(state, ${STATE.waiting}) = _state
      AND (_state <> ${STATE.waiting} OR (priority > 0) = (_list = 'prioritized')) AND ${UNTOUCHED}
    ORDER BY CASE WHEN _state >= ${STATE.completed} THEN ord ELSE added END FOR UPDATE SKIP LOCKED);
END`,
  ) +
  // Removes the selected jobs, and records how many. Returns their ids.
  step(
    'clear_lists(_queue int, _lists text[], _age float8, _limit int)',
    'text[]',
    `
DECLARE
  _latest bigint := ${LATEST};
  _list text;
  _rows tid[];
  _found text[];
  _ids text[] := '{}';
  _change journal := no_change(_queue);
BEGIN
  FOREACH _list IN ARRAY _lists LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    _rows := select_listed(_queue, _list, _latest, _limit - cardinality(_ids));
    _found := ARRAY(SELECT id FROM unnest(_rows) WITH ORDINALITY r(at, n), LATERAL (SELECT id FROM jobs WHERE ctid = at OFFSET 0) j ORDER BY n);
    CONTINUE WHEN cardinality(_found) = 0;
    PERFORM drop_jobs(_queue, _rows);
    _ids := _ids || _found;
    CASE _list
      WHEN 'waiting' THEN _change.waiting := -cardinality(_found);
      WHEN 'prioritized' THEN _change.prioritized := -cardinality(_found);
      WHEN 'delayed' THEN _change.delayed := -cardinality(_found);
      WHEN 'completed' THEN _change.completed := -cardinality(_found);
      ELSE _change.failed := -cardinality(_found);
    END CASE;
  END LOOP;
  IF cardinality(_ids) > 0 THEN
    _change.events := 1;
    _change.body := event('cleaned', NULL, json_build_object('count', cardinality(_ids)));
    ${NOTE}
    ${FOLD_SOMETIMES}
  END IF;
  RETURN _ids;
END`,
  ) +
  // Records the event of a removal that found nothing. Processes of earlier versions also call it after they removed jobs by their ids.
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
    'remove_listed(_name text, _lists text[], _age float8, _limit int)',
    'text',
    `
DECLARE
  _ids text[] := clear_lists((SELECT queue FROM queues WHERE name = _name), _lists, _age, _limit);
BEGIN
  IF cardinality(_ids) = 0 THEN PERFORM tell_cleaned(_name, 0); END IF;
  RETURN to_json(_ids);
END`,
  ) +
  verb(
    'requeue_listed(_name text, _list text, _age float8, _limit int, _reset_made boolean, _reset_started boolean)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _ids text[];
BEGIN
  IF _queue IS NOT NULL THEN
    _ids := send_to_waiting(_queue, array_position(${LISTS_OF_STATES}, _list)::smallint, select_listed(_queue, _list, ${LATEST}, _limit),
      _reset_made, _reset_started);
    IF _ids IS NOT NULL THEN ${FOLD_SOMETIMES} END IF;
  END IF;
  RETURN to_json(coalesce(_ids, '{}'));
END`,
  ) +
  // Processes of earlier versions call these two. They name states, where waiting jobs have any priority.
  verb(
    'clear_jobs(_name text, _states smallint[], _age float8, _limit int)',
    'text',
    `
BEGIN
  RETURN to_json(clear_lists((SELECT queue FROM queues WHERE name = _name),
    ARRAY(SELECT list FROM unnest(_states) WITH ORDINALITY o(state, n),
      unnest(CASE WHEN state = ${STATE.waiting} THEN '{waiting,prioritized}' ELSE ARRAY[(${LISTS_OF_STATES})[state]] END) list ORDER BY n), _age, _limit));
END`,
  ) +
  verb(
    'requeue(_name text, _states smallint[], _age float8, _limit int)',
    'text',
    `
DECLARE
  _state smallint;
  _moved int := 0;
BEGIN
  FOREACH _state IN ARRAY _states LOOP
    CONTINUE WHEN _state IN (${STATE.waiting}, ${STATE.active});
    _moved := _moved + json_array_length(requeue_listed(_name, (${LISTS_OF_STATES})[_state], _age, _limit - _moved, false, false)::json);
  END LOOP;
  RETURN _moved;
END`,
  );

export async function changeSelected(server: Server, queue: string, selection: Selection, change: Change): Promise<ChangeReply> {
  const { lists, olderThanMs = null } = selection;
  const limit = Math.min(selection.limit, 2 ** 31 - 1);
  if (change.kind === 'remove') {
    const removed = await server.call<string[]>('remove_listed', [queue, [...new Set(lists)], olderThanMs, limit]);
    return replyToSelection(removed, selection);
  }
  const list = movedList(change, selection);
  if (list === undefined) return replyToSelection([], selection);
  const resets = change.kind === 'retry' ? [change.resetAttemptsMade, change.resetAttemptsStarted] : [false, false];
  const moved = await server.call<string[]>('requeue_listed', [queue, list, olderThanMs, limit, ...resets]);
  return replyToSelection(moved, selection);
}
