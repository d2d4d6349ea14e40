// The spec of a schedule, and its slots: computed from the spec, or by the strategy of the user. The spec is the text that a queue stores
// with a schedule; any process computes slots from it.
import type { JobsOptions } from '../../job/options.js';
import { firstSlot, nextSlot, nextTimes, type RepeatStrategy, type Slot as Moment, type Timing } from '../../job/schedule.js';
import { invalidOption } from '../../runtime/check.js';

export interface ScheduleSpec {
  /** The name of the jobs. */
  name: string;
  /** The data of the jobs, as JSON text. */
  data: string;
  /** The options of the jobs, with the defaults of the queue. */
  opts: JobsOptions;
  /** The template as the caller gave it, for those who read the schedule. */
  template?: { data?: unknown; opts?: JobsOptions };
  timing: Timing;
  /** The time zone of the process that made the schedule, for a pattern without one. */
  zone?: string;
}

/** The last moment that a Date can show. */
const MAX_TIME = 8.64e15;

export function readSpec(text: string): ScheduleSpec {
  return JSON.parse(text) as ScheduleSpec;
}

/** Returns the timing in the zone that its pattern means, wherever this process runs. */
export function timingOf({ timing, zone }: ScheduleSpec): Timing {
  return timing.pattern === undefined || timing.tz !== undefined || zone === undefined ? timing : { ...timing, tz: zone };
}

/** Returns the slot that follows the last one; undefined if the schedule has ended. */
export async function following(
  spec: ScheduleSpec,
  last: Moment,
  now: number,
  strategy?: RepeatStrategy,
): Promise<Moment | undefined> {
  if (strategy === undefined || spec.timing.pattern === undefined) return nextSlot(timingOf(spec), last, now);
  const { endDate = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = spec.timing;
  const count = last.count + 1;
  if (count > limit) return undefined;
  const at = checkMoment(await strategy(Math.max(last.at, now), spec.timing, spec.name), last.at);
  return at !== undefined && at <= endDate ? { at, count } : undefined;
}

/** A strategy that returns nonsense must not end the schedule silently. */
function checkMoment(given: unknown, last: number): number | undefined {
  if (given === undefined || given === null || given === false) return undefined;
  const at = typeof given === 'number' ? Math.floor(given) : Number.NaN;
  if (at > last && at <= MAX_TIME) return at;
  const wanted = `a function that returns a moment after ${last} in epoch ms, or undefined to end the schedule`;
  throw invalidOption('settings.repeatStrategy', given, wanted);
}

/** Returns the first slot of a schedule that is made now, or made anew after it has had `made` jobs. */
export async function beginning(
  spec: ScheduleSpec,
  made: number,
  now: number,
  strategy?: RepeatStrategy,
): Promise<Moment | undefined> {
  const { pattern, immediately, startDate = now, limit = Number.POSITIVE_INFINITY } = spec.timing;
  if (strategy !== undefined && pattern !== undefined && immediately !== true)
    return following(spec, { at: 0, count: made }, Math.max(startDate, now), strategy);
  const first = made < limit ? firstSlot(timingOf(spec), now) : undefined;
  return first && { at: first.at, count: made + 1 };
}

/** Returns the slots that follow the last one, in epoch ms, at most `count`. */
export async function slotsAfter(
  spec: ScheduleSpec,
  last: Moment,
  now: number,
  count: number,
  strategy?: RepeatStrategy,
): Promise<number[]> {
  if (strategy === undefined || spec.timing.pattern === undefined) return nextTimes(timingOf(spec), last, now, count);
  const times: number[] = [];
  let slot = await following(spec, last, now, strategy);
  while (slot !== undefined && times.push(slot.at) < count) slot = await following(spec, slot, now, strategy);
  return times;
}
