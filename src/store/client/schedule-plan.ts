// From the spec of a schedule to its next job, and what becomes of a job whose slot was missed.
import { newJob } from '../../job/new-job.js';
import { offsetOf, type RepeatOptions, type RepeatStrategy, type Slot as Moment } from '../../job/schedule.js';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import type { ScheduleRecord } from '../../job/schedule-record.js';
import { systemClock } from '../../runtime/clock.js';
import type { ScheduleReply, Slot, Store } from '../contract/index.js';
import { following, readSpec, type ScheduleSpec } from './schedule-slots.js';

export interface Planning {
  store: Store;
  queue: string;
  strategy?: RepeatStrategy | undefined;
}

/** More slots in a row than this are not taken, unless ids are chosen on purpose. */
const MAX_TAKEN = 1000;

/** Returns the job of a slot as the store takes it. Its options show what BullMQ shows. */
export function slotOf(id: string, spec: ScheduleSpec, { at, count }: Moment, now: number): Slot {
  const { name, data, opts, timing } = spec;
  const { immediately: _, catchUp, ...repeat } = timing;
  // The clock of a store counts fractions of a millisecond; jobs show whole ones. Both together name the slot.
  const dueInMs = Math.max(0, Math.ceil(at - now));
  const offset = offsetOf(timing, { at, count });
  const shown = {
    ...opts,
    delay: dueInMs,
    prevMillis: at,
    repeat: { ...repeat, ...(catchUp !== 'one' && { catchUp }), count, offset },
  };
  return {
    at,
    dueInMs,
    count,
    job: {
      ...newJob(name, data, opts, JSON.stringify(shown), Math.floor(now)),
      id: `repeat:${id}:${at}`,
      delayMs: dueInMs,
    },
  };
}

/** Returns the slot of a claimed job that may be missed: its options say so, and no handler has seen it. Else undefined. */
export function doubtful({ opts, attemptsStarted }: ClaimedJob): Moment | undefined {
  if (attemptsStarted > 1) return undefined;
  const { prevMillis: at, repeat } = JSON.parse(opts) as RepeatOptions & { repeat?: RepeatOptions };
  return repeat?.catchUp !== 'none' || at === undefined ? undefined : { at, count: repeat.count ?? 1 };
}

/** True if the job of a slot is not to run: with `catchUp: 'none'`, the slot after it is due as well. */
export async function isMissed(spec: ScheduleSpec, slot: Moment, now: number, strategy?: RepeatStrategy): Promise<boolean> {
  if (spec.timing.catchUp !== 'none') return false;
  const next = await following(spec, slot, slot.at, strategy);
  return next !== undefined && next.at <= now;
}

/** Returns how a job ends that is not to run: it is removed, and a serial schedule goes on. */
export function skipped({ id: jobId, token }: Pick<ClaimedJob, 'id' | 'token'>): Outcome {
  return { kind: 'completed', jobId, token, value: 'null', keep: { count: 0 } };
}

/** Makes the next job of an owing schedule. A slot that is taken is passed over. `stale`: another process was faster. */
export async function advance(planning: Planning, record: ScheduleRecord, now: number): Promise<ScheduleReply['status']> {
  const { store, queue, strategy } = planning;
  const { id, version } = record;
  const spec = readSpec(record.spec);
  const readAt = systemClock.monotonic();
  let last: Moment = { at: record.at, count: record.count };
  for (let tries = 0; tries < MAX_TAKEN; tries += 1) {
    const found = await following(spec, last, now, strategy);
    // A strategy may take its time.
    const next = found && slotOf(id, spec, found, now + systemClock.monotonic() - readAt);
    const [reply] = await store.schedule(queue, [{ kind: 'advance', id, version, next }]);
    if (reply?.status !== 'taken' || found === undefined) return reply?.status ?? 'missing';
    last = { at: found.at, count: last.count };
  }
  return 'taken';
}
