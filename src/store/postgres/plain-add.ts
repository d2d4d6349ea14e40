// The short way of adding one job that asks for nothing but to be run: one function that calls no other, under the settings of the
// connection (sql-function.ts). What it finds to be otherwise goes to `add`, which must find everything as if this had not been there.
import type { NewJob } from '../../job/record.js';
import type { Call } from '../contract.js';
import { FOLD_SOMETIMES } from './fold.js';
import type { Server } from './server.js';
import { step } from './sql-function.js';
import { STATE } from './tables.js';

const LONG_WAY =
  'add(_name, _caller, _seq, NULL, ARRAY[_job], ARRAY[_data], ARRAY[_opts], NULL, NULL, NULL, ARRAY[_timestamp], NULL)';

export const PLAIN_ADD_FUNCTIONS = step(
  'add_plain(_name text, _caller text, _seq bigint, _job text, _data text, _opts text, _timestamp float8)',
  'text',
  `
DECLARE
  _now bigint := floor(clock_ms());
  _queue int;
  _reply text;
  _id text;
  _place bigint;
BEGIN
  -- The caller is locked, told its id and remembered in one go.
  UPDATE callers c SET seq = _seq, used_at = _now, reply = '{"first":' || nextval(('ids_' || c.queue)::regclass) || ',"count":1}'
  WHERE c.queue = (SELECT queue FROM queues WHERE name = _name) AND c.id = _caller AND c.seq < _seq RETURNING c.queue, c.reply INTO _queue, _reply;
  IF NOT FOUND THEN RETURN ${LONG_WAY}; END IF;
  _id := lastval();
  _place := nextval('places') + 1;
  INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, timestamp, id, name, opts, data)
  VALUES (_queue, ${STATE.waiting}, 0, _place, _place, _now, 0, _timestamp, _id, _job, _opts, _data) ON CONFLICT (queue, id) DO NOTHING;
  IF NOT FOUND THEN
    -- A user took this id before.
    UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _caller;
    RETURN ${LONG_WAY};
  END IF;
  INSERT INTO journal (queue, waiting, events, body)
  VALUES (_queue, 1, 2, event('added', ARRAY[_id], json_build_object('jobName', ARRAY[_job])) || ',' || event('waiting', ARRAY[_id]));
  ${FOLD_SOMETIMES}
  RETURN _reply;
END`,
);

/** Undefined where it is not the short way's matter, or connections are not set up for it. */
export async function addPlain<T>(server: Server, queue: string, jobs: NewJob[], { caller, seq }: Call): Promise<T | undefined> {
  const [job] = jobs;
  if (job === undefined || jobs.length > 1 || job.id !== undefined || job.lockKey !== undefined) return undefined;
  if (job.priority !== 0 || job.delayMs !== 0 || job.lifo) return undefined;
  const values = [queue, caller, seq, job.name, job.data, job.opts, job.timestamp];
  const rows = await server.short('add_plain', server.statement('add_plain', values.length), values);
  return rows === undefined ? undefined : (JSON.parse(rows[0]?.[0] as string) as T);
}
