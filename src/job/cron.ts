// The times that a cron pattern names in a time zone. The only file that knows croner. Pure: it reads no clock and starts no timer.
//
// Clock changes. A pattern names *times of day* if its seconds, minutes and hours are numbers or lists of numbers, at most 24 times in all
// (`30 2 * * *`, `0 2,14 * * *`). Each of these comes exactly once on each of its days: a time that the clock skips comes at the first
// moment after the gap; of a time that the clock repeats, only the first counts. Any other pattern (`*/15 * * * *`, `0 9-17 * * *`) names
// *intervals*: it follows the clock on the wall, so skipped times do not come, and repeated times come twice.
//
// BullMQ's cron-parser differs in three points. It moves a skipped time by the length of the gap (02:30 becomes 03:30, not 03:00). For
// hours with a step or a range, it also moves skipped times, and takes repeated ones once. In some zones (Australia/Lord_Howe) it finds
// nothing and throws. It also fills missing fields with `*`; here a pattern has five or six fields.
import { Cron } from 'croner';
import { HoldfastError, toError } from '../errors.js';
import { checkText, invalidOption, show } from '../runtime/check.js';
import { WallClock } from './wall-clock.js';

export interface CronTimes {
  /** Returns the first time after this moment, both in epoch ms. Undefined if none follows. */
  next(after: number): number | undefined;
}

/** Enough for every value of minutes and hours in lists. */
const MAX_PATTERN = 512;
const MAX_ZONE = 100;
const MAX_TIMES_OF_DAY = 24;

const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 0 1 1 *'],
  ['@annually', '0 0 0 1 1 *'],
  ['@monthly', '0 0 0 1 * *'],
  ['@weekly', '0 0 0 * * 0'],
  ['@daily', '0 0 0 * * *'],
  ['@midnight', '0 0 0 * * *'],
  ['@hourly', '0 0 * * * *'],
  ['@minutely', '0 * * * * *'],
  ['@secondly', '* * * * * *'],
  ['@weekdays', '0 0 0 * * 1-5'],
  ['@weekends', '0 0 0 * * 0,6'],
]);

/** The largest value of each field: `5/10` means from 5 up to it. */
const LARGEST = [59, 59, 23, 31, 12, 7];
/** A part of a pattern with one time of day. */
const TIME_OF_DAY = /^\d+ \d+ \d+ /;
const WANTED =
  'a cron pattern of five fields (minute, hour, day, month, weekday) or six (second first), or a name such as @daily';
/** croner's `+` (day and weekday) is left out: other cron programs do not know it. */
const FIELD = /^[\d*?,\-/#a-z]+$/i;

/** Throws INVALID_OPTION if no time can be computed from the pattern. Without `tz`, the zone of this process applies. */
export function cronTimes(pattern: unknown, tz?: unknown): CronTimes {
  const fields = fieldsOf(pattern);
  const timezone = checkZone(tz ?? new Intl.DateTimeFormat().resolvedOptions().timeZone);
  let parts: CronTimes[];
  try {
    parts = partsOf(fields).map((part) => (TIME_OF_DAY.test(part) ? timesOfDay(part, timezone) : intervals(part, timezone)));
  } catch (thrown) {
    throw invalidPattern(pattern, toError(thrown).message.replace(/^CronPattern: /, ''), thrown);
  }
  const times: CronTimes = { next: (after) => earliest(parts, after) };
  // The parts differ in their times of day and in at most two kinds of dates, so two of them show whether a date exists.
  if (earliest(parts.slice(0, 2), 0) === undefined) throw invalidPattern(pattern, 'no date ever matches it');
  return times;
}

/** Returns the six fields as text. */
function fieldsOf(pattern: unknown): string[] {
  if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN) throw invalidOption('pattern', pattern, WANTED);
  const text = pattern.trim();
  const fields = (NICKNAMES.get(text.toLowerCase()) ?? text).split(/\s+/);
  if (fields.length === 5) fields.unshift('0');
  if (fields.length !== 6 || !fields.every((field) => FIELD.test(field))) throw invalidOption('pattern', pattern, WANTED);
  return fields.map((field, index) => field.replace(/(^|,)(\d+)\//g, `$1$2-${LARGEST[index]}/`));
}

export function checkZone(tz: unknown): string {
  const wanted = 'the name of a time zone, such as "Europe/Berlin" or "UTC"';
  try {
    const zone = checkText('tz', tz, MAX_ZONE);
    // Some runtimes take "+02:00", others do not, and both may work on one queue.
    if (/^[+-]/.test(zone)) throw invalidOption('tz', tz, wanted);
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return zone;
  } catch {
    throw invalidOption('tz', tz, wanted);
  }
}

/**
 * Splits a pattern into patterns whose times together are its times. Days and weekdays, if both are given, become two patterns: of one
 * with both, croner 11 leaves out the 1st and 2nd of March in some years. Times of day become one pattern each, because croner takes a
 * pattern with a list for an interval.
 */
function partsOf([seconds = '', minutes = '', hours = '', days = '', months = '', weekdays = '']: string[]): string[] {
  const isAny = (field: string): boolean => field === '*' || field === '?';
  const dates =
    isAny(days) || isAny(weekdays) ? [`${days} ${months} ${weekdays}`] : [`${days} ${months} *`, `* ${months} ${weekdays}`];
  return timesOf(seconds, minutes, hours).flatMap((time) => dates.map((date) => `${time} ${date}`));
}

function timesOf(...fields: [string, string, string]): string[] {
  const whole = fields.join(' ');
  if (!/^[\d, ]+$/.test(whole)) return [whole];
  const lists = fields.map((field) => [...new Set(field.split(','))]);
  if (lists.reduce((product, { length }) => product * length, 1) > MAX_TIMES_OF_DAY) return [whole];
  return lists.reduce<string[]>((made, list) => made.flatMap((start) => list.map((value) => `${start} ${value}`.trim())), ['']);
}

function intervals(pattern: string, timezone: string): CronTimes {
  const cron = new Cron(pattern, { timezone, paused: true });
  return { next: (after) => cron.nextRun(new Date(after))?.getTime() };
}

/**
 * One time of day. croner finds the times on the clock on the wall, and the zone says which moment that is: croner itself checks a time
 * that it has moved out of a gap against the dates again, and so loses it if the gap ends at midnight.
 */
function timesOfDay(pattern: string, timezone: string): CronTimes {
  const cron = new Cron(pattern, { timezone: 'UTC', paused: true });
  const zone = new WallClock(timezone);
  return {
    next(after) {
      let wall: Date | null | undefined = new Date(zone.at(after));
      while ((wall = cron.nextRun(wall))) {
        const time = zone.first(wall.getTime());
        // A time that the clock repeats has come before.
        if (time > after) return time;
      }
      return undefined;
    },
  };
}

function earliest(parts: readonly CronTimes[], after: number): number | undefined {
  let first: number | undefined;
  for (const part of parts) {
    const time = part.next(after);
    if (time !== undefined && (first === undefined || time < first)) first = time;
  }
  return first;
}

function invalidPattern(pattern: unknown, why: string, cause?: unknown): HoldfastError {
  const message = `pattern must be ${WANTED}, but ${show(pattern)} is none: ${why}`;
  return new HoldfastError('INVALID_OPTION', message.endsWith('.') ? message : `${message}.`, { option: 'pattern', cause });
}
