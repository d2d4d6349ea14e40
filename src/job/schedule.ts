// When the jobs of a schedule are due. Pure: the caller passes the time of the store's wall clock, in epoch ms. A slot is a moment at which
// a job is due, with its number; the caller keeps the last slot and asks for the next one.
//
// `every`: the first slot is now, or at `startDate`; each further slot is one interval later. With `offset`, slots lie on the multiples of
// the interval plus the offset. `pattern`: cron.ts has the times, and the rule for clock changes. A slot lies after now, after `startDate`
// and after the last slot. No slot lies after `endDate`, and there are at most `limit`.
//
// A late schedule (no worker ran, or the clock was set forward) has missed slots. `catchUp` says what becomes of them. 'one', the default:
// the job that was waiting runs once for all of them. 'all': each missed slot gets a job. 'none': a job whose following slot is due as
// well does not run. In each case the grid stays as it was.
import { HoldfastError } from '../errors.js';
import { MAX_DELAY_MS, checkBoolean, checkInteger, checkText, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { cronTimes, type CronTimes } from './cron.js';

export type CatchUp = 'one' | 'all' | 'none';
export type Overlap = 'queue' | 'skip';

/** BullMQ's options of a schedule, and `catchUp` and `overlap`. */
export interface RepeatOptions {
  /** A cron pattern: five fields, or six with seconds first. */
  pattern?: string;
  /** The time zone of the pattern. Default: the zone of the process that makes the schedule. */
  tz?: string;
  /** Milliseconds from one slot to the next. */
  every?: number;
  /** With `every`: the slots are the multiples of `every` since the epoch, plus this many ms. */
  offset?: number;
  startDate?: Date | string | number;
  endDate?: Date | string | number;
  /** How many jobs the schedule makes. Default: no limit. */
  limit?: number;
  /** With `pattern` or `offset`: the first job is due now. */
  immediately?: boolean;
  /** The rule for slots that were missed. 'one' (the default): one job for all of them. 'all': a job for each. 'none': no job. */
  catchUp?: CatchUp;
  /** A slot that comes while the last job lives. 'queue' (the default): its job is added. 'skip': it gets no job, so no two run at once. */
  overlap?: Overlap;
  /** Of the older `repeat` option: the id of the schedule, and a part of that id. */
  key?: string;
  jobId?: string;
  /** Of BullMQ: true without `tz` is the zone UTC. */
  utc?: boolean;
  /** BullMQ keeps these two in the options of a job. They have no effect here. */
  count?: number;
  prevMillis?: number;
}

type Millis = number | undefined;
/** A user's own way to compute the slots of a pattern: from a moment in epoch ms to the next one; undefined ends the schedule. */
export type RepeatStrategy = (millis: number, opts: RepeatOptions, name: string) => Millis | Promise<Millis>;

/** Checked options; dates in epoch ms. */
export interface Timing {
  pattern?: string;
  tz?: string;
  every?: number;
  offset?: number;
  startDate?: number;
  endDate?: number;
  limit?: number;
  immediately?: boolean;
  catchUp: CatchUp;
  overlap?: 'skip';
}

export interface Slot {
  at: number;
  /** 1 for the first job of the schedule. */
  count: number;
}

const MAX_KEY = 500;
const MAX_TIME = 8.64e15;
/** The most times that are listed at once. */
export const MAX_LISTED = 1000;

const NAMES = new OptionNames<RepeatOptions>({
  of: 'repeat',
  known: {
    pattern: true,
    tz: true,
    every: true,
    offset: true,
    startDate: true,
    endDate: true,
    limit: true,
    immediately: true,
    catchUp: true,
    overlap: true,
    key: true,
    jobId: true,
    count: true,
    prevMillis: true,
    utc: true,
  },
  unsupported: {
    cron: 'It is called pattern.',
    data: 'Pass it in the template of the jobs: { name, data, opts }.',
    opts: 'Pass it in the template of the jobs: { name, data, opts }.',
    template: 'Pass it as the third argument of upsertJobScheduler.',
  },
});

/** Throws INVALID_OPTION. The messages about options that exclude each other begin as BullMQ's do: programs match on them. */
export function checkRepeat(given: unknown, now: number, path = 'repeat'): Timing {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalidOption(path, given, 'an object with pattern or every');
  NAMES.check(given, path);
  // Programs take schedules from tables, where null means "not set".
  const repeat: RepeatOptions = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const { pattern, every, offset, limit, immediately, utc, catchUp = 'one', overlap = 'queue', key, jobId } = repeat;
  const { tz = utc === true ? 'UTC' : undefined } = repeat;
  checkExclusive(repeat);
  const timing: Timing = { ...checkDates(repeat, now), catchUp };
  if (pattern !== undefined) {
    cronTimes(pattern, tz);
    timing.pattern = pattern;
    // BullMQ shows an offset of 0 for every pattern, and programs pass on what it shows.
    if (offset !== undefined && offset !== 0)
      throw invalidOption('offset', offset, 'left out beside pattern: it moves the slots of every');
  } else {
    timing.every = checkInteger('every', every, { min: 1, max: MAX_DELAY_MS });
    if (offset !== undefined) timing.offset = checkInteger('offset', offset, { max: timing.every - 1 });
  }
  // Beside `every` a zone has no effect, and BullMQ does not look at it.
  if (typeof tz === 'string') timing.tz = tz;
  if (limit !== undefined) timing.limit = checkInteger('limit', limit, { min: 1 });
  if (immediately !== undefined) timing.immediately = checkBoolean('immediately', immediately);
  if (!['one', 'all', 'none'].includes(catchUp)) throw invalidOption('catchUp', catchUp, "'one', 'all' or 'none'");
  if (overlap !== 'queue' && overlap !== 'skip') throw invalidOption('overlap', overlap, "'queue' or 'skip'");
  if (overlap === 'skip') timing.overlap = overlap;
  for (const [name, text] of Object.entries({ key, jobId })) if (text !== undefined) checkText(name, text, MAX_KEY);
  return timing;
}

export function checkStrategy(strategy: unknown): void {
  if (strategy !== undefined && typeof strategy !== 'function')
    throw invalidOption('settings.repeatStrategy', strategy, 'a function (millis, opts, name) => the next moment');
}

/** Throws INVALID_OPTION if the schedule has ended before it begins. */
export function checkEnd({ endDate = MAX_TIME }: Pick<Timing, 'endDate'>, now: number): void {
  if (endDate <= now)
    throw exclusive('endDate', 'End date must be greater than current timestamp: choose a later one, or remove the schedule.');
}

/** Returns the first slot of a schedule that is made now. Undefined: it never has one. */
export function firstSlot(timing: Timing, now: number): Slot | undefined {
  const { every, offset, startDate = now, immediately } = timing;
  const from = Math.max(startDate, now);
  if (every === undefined) return within(timing, immediately === true ? now : timesOf(timing).next(from), 1);
  if (offset === undefined) return within(timing, from, 1);
  const at = Math.floor((from - offset) / every) * every + offset;
  return within(timing, immediately === true ? at : at + every, 1);
}

/** Returns the slot that follows the last one. Undefined: the schedule has ended. */
export function nextSlot(timing: Timing, last: Slot, now: number): Slot | undefined {
  return slotAfter(timing, timing.every === undefined ? timesOf(timing) : undefined, last, now);
}

/** Returns the next `count` slots, in epoch ms. `last` is undefined for a schedule that has none yet. */
export function nextTimes(timing: Timing, last: Slot | undefined, now: number, count: number): number[] {
  const wanted = checkInteger('count', count, { min: 1, max: MAX_LISTED });
  const times = timing.every === undefined ? timesOf(timing) : undefined;
  const found: number[] = [];
  let slot = last === undefined ? firstSlot(timing, now) : slotAfter(timing, times, last, now);
  while (slot !== undefined && found.push(slot.at) < wanted) slot = slotAfter(timing, times, slot, now);
  return found;
}

/** Returns the offset that BullMQ reports: of `every` without `offset`, where the slots lie between its multiples. */
export function offsetOf({ every, offset }: Timing, slot: Slot): number {
  return every === undefined ? 0 : (offset ?? slot.at % every);
}

/** The id of a schedule that was made with the older `repeat` option: its `key`, else its parts, as in BullMQ 5. */
export function repeatKey(name: string, { key, jobId = '', endDate, tz = '', pattern, every }: RepeatOptions): string {
  if (key !== undefined) return key;
  const end = endDate === undefined ? '' : new Date(endDate).getTime();
  return [name, jobId, end, tz, pattern ?? every].join(':');
}

function slotAfter(timing: Timing, times: CronTimes | undefined, last: Slot, now: number): Slot | undefined {
  const { every = 0, catchUp } = timing;
  const after = catchUp === 'all' ? last.at : Math.max(last.at, now);
  const at = times === undefined ? last.at + (Math.floor((after - last.at) / every) + 1) * every : times.next(after);
  return within(timing, at, last.count + 1);
}

function within({ endDate = MAX_TIME, limit = Infinity }: Timing, at: number | undefined, count: number): Slot | undefined {
  return at === undefined || at > endDate || count > limit ? undefined : { at, count };
}

function timesOf({ pattern, tz }: Timing): CronTimes {
  return cronTimes(pattern, tz);
}

function checkExclusive({ pattern, every, immediately, startDate }: RepeatOptions): void {
  if (pattern !== undefined && every !== undefined)
    throw exclusive('pattern', 'Both .pattern and .every options are defined for this repeatable job: give one of them.');
  if (pattern === undefined && every === undefined)
    throw exclusive('pattern', 'Either .pattern or .every options must be defined for this repeatable job: give one of them.');
  if (immediately === true && startDate !== undefined)
    throw exclusive(
      'immediately',
      'Both .immediately and .startDate options are defined for this repeatable job: leave one of them out.',
    );
}

function checkDates({ startDate, endDate }: RepeatOptions, now: number): Pick<Timing, 'startDate' | 'endDate'> {
  const dates: Pick<Timing, 'startDate' | 'endDate'> = {};
  if (startDate !== undefined) dates.startDate = checkDate('startDate', startDate);
  if (endDate === undefined) return dates;
  dates.endDate = checkDate('endDate', endDate);
  checkEnd(dates, now);
  if (dates.startDate !== undefined && dates.startDate > dates.endDate)
    throw invalidOption('startDate', startDate, 'at or before endDate');
  return dates;
}

function checkDate(option: string, given: unknown): number {
  const isDate = given instanceof Date || typeof given === 'string' || typeof given === 'number';
  const time = isDate ? new Date(given).getTime() : Number.NaN;
  if (Number.isNaN(time) || time < 0) throw invalidOption(option, given, 'a Date, a date as text, or epoch milliseconds');
  return time;
}

function exclusive(option: string, message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message, { option });
}
