import { describe, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import {
  checkRepeat,
  firstSlot,
  nextSlot,
  nextTimes,
  offsetOf,
  repeatKey,
  type RepeatOptions,
  type Slot,
  type Timing,
} from '../../src/job/schedule.js';
import { beginning, following, slotsAfter } from '../../src/store/client/schedule-slots.js';
import { isMissed as isMissedBy } from '../../src/store/client/schedule-plan.js';

const NOW = Date.parse('2026-11-16T12:00:00.500Z');
const HOUR = 3_600_000;

const timingOf = (repeat: RepeatOptions): Timing => checkRepeat(repeat, NOW);
const isMissed = (timing: Timing, slot: Slot, now: number): Promise<boolean> =>
  isMissedBy({ name: 'j', data: '{}', opts: {}, timing }, slot, now);
const at = (slot: Slot | undefined): number | undefined => slot?.at;

function refusal(repeat: unknown): Pick<HoldfastError, 'code' | 'option' | 'message'> | 'accepted' {
  try {
    checkRepeat(repeat, NOW);
    return 'accepted';
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return { code: error.code, option: error.option ?? '', message: error.message };
  }
}

describe('the first slot', () => {
  test('of every is now', () => {
    expect(firstSlot(timingOf({ every: 1000 }), NOW)).toEqual({ at: NOW, count: 1 });
  });

  test('of every with startDate is the later of both', () => {
    expect(at(firstSlot(timingOf({ every: 1000, startDate: NOW + 70_000 }), NOW))).toBe(NOW + 70_000);
    expect(at(firstSlot(timingOf({ every: 1000, startDate: new Date(NOW - 70_000) }), NOW))).toBe(NOW);
  });

  test('of every with offset is the next multiple plus the offset, strictly ahead', () => {
    const hour = Date.parse('2026-11-16T12:00:00Z');
    const timing = timingOf({ every: HOUR, offset: 600_000 });
    expect(at(firstSlot(timing, hour))).toBe(hour + 600_000);
    expect(at(firstSlot(timing, hour + 600_000))).toBe(hour + HOUR + 600_000);
    expect(at(firstSlot(timing, hour + 600_001))).toBe(hour + HOUR + 600_000);
    expect(at(firstSlot(timingOf({ every: HOUR, offset: 0, startDate: hour + HOUR + 1 }), hour))).toBe(hour + 2 * HOUR);
  });

  test('of a pattern lies after now and after startDate', () => {
    const timing: RepeatOptions = { pattern: '0 0 * * *', tz: 'UTC' };
    expect(at(firstSlot(timingOf(timing), NOW))).toBe(Date.parse('2026-11-17T00:00:00Z'));
    const later = timingOf({ ...timing, startDate: '2026-11-18T00:00:00Z' });
    expect(at(firstSlot(later, NOW))).toBe(Date.parse('2026-11-19T00:00:00Z'));
  });

  test('of a pattern with immediately is now, and the second on the pattern', () => {
    const timing = timingOf({ pattern: '0 0 * * *', tz: 'UTC', immediately: true });
    expect(nextTimes(timing, undefined, NOW, 2)).toEqual([NOW, Date.parse('2026-11-17T00:00:00Z')]);
  });

  test('does not exist if endDate comes before it', () => {
    expect(firstSlot(timingOf({ pattern: '0 0 * * *', tz: 'UTC', endDate: NOW + 1000 }), NOW)).toBeUndefined();
  });

  test('of a pattern without tz is in the zone of the process', () => {
    const midnight = new Date(NOW);
    midnight.setHours(24, 0, 0, 0);
    expect(at(firstSlot(timingOf({ pattern: '0 0 * * *' }), NOW))).toBe(midnight.getTime());
  });
});

describe('the next slot', () => {
  const last: Slot = { at: NOW, count: 4 };

  test('of every is one interval later, counted', () => {
    expect(nextSlot(timingOf({ every: 1000 }), last, NOW + 5)).toEqual({ at: NOW + 1000, count: 5 });
  });

  test('stays on the grid when slots were missed', () => {
    expect(at(nextSlot(timingOf({ every: 1000 }), last, NOW + 3500))).toBe(NOW + 4000);
    expect(at(nextSlot(timingOf({ every: 1000 }), last, NOW + 4000))).toBe(NOW + 5000);
  });

  test('goes on from the last slot when the clock was set back', () => {
    expect(at(nextSlot(timingOf({ every: 1000 }), last, NOW - 50 * HOUR))).toBe(NOW + 1000);
    const daily = timingOf({ pattern: '0 0 * * *', tz: 'UTC' });
    const midnight = Date.parse('2026-11-17T00:00:00Z');
    expect(at(nextSlot(daily, { at: midnight, count: 1 }, midnight - 1000))).toBe(midnight + 24 * HOUR);
  });

  test('ends after limit jobs and after endDate', () => {
    expect(nextSlot(timingOf({ every: 1000, limit: 5 }), last, NOW)?.count).toBe(5);
    expect(nextSlot(timingOf({ every: 1000, limit: 4 }), last, NOW)).toBeUndefined();
    expect(at(nextSlot(timingOf({ every: 1000, endDate: NOW + 1000 }), last, NOW))).toBe(NOW + 1000);
    expect(nextSlot(timingOf({ every: 1000, endDate: NOW + 999 }), last, NOW)).toBeUndefined();
  });

  test('grows, whatever the clock shows, over intervals and patterns', () => {
    for (const repeat of [{ every: 7 }, { every: 86_400_000, offset: 5 }, { pattern: '*/7 * * * *', tz: 'Europe/Berlin' }]) {
      for (const catchUp of ['one', 'all', 'none'] as const) {
        const timing = timingOf({ ...repeat, catchUp });
        let slot: Slot = { at: NOW, count: 1 };
        for (const step of [0, 5, -HOUR, 30 * HOUR, -400 * HOUR, 400 * HOUR, 1]) {
          const following = nextSlot(timing, slot, slot.at + step);
          expect(following?.at, JSON.stringify(timing)).toBeGreaterThan(slot.at);
          expect(following?.count).toBe(slot.count + 1);
          slot = following as Slot;
        }
      }
    }
  });
});

describe('missed slots', () => {
  const slot: Slot = { at: NOW, count: 1 };
  const late = NOW + 3500;

  test("with catchUp 'one', the late job runs for all of them", async () => {
    const timing = timingOf({ every: 1000 });
    expect(timing.catchUp).toBe('one');
    expect(await isMissed(timing, slot, late)).toBe(false);
    expect(nextTimes(timing, slot, late, 2)).toEqual([NOW + 4000, NOW + 5000]);
  });

  test("with catchUp 'all', each gets a job", async () => {
    const timing = timingOf({ every: 1000, catchUp: 'all' });
    expect(await isMissed(timing, slot, late)).toBe(false);
    expect(nextTimes(timing, slot, late, 4)).toEqual([1000, 2000, 3000, 4000].map((ms) => NOW + ms));
  });

  test("with catchUp 'none', a job does not run once the slot after it is due", async () => {
    const timing = timingOf({ every: 1000, catchUp: 'none' });
    expect(await isMissed(timing, slot, NOW + 999)).toBe(false);
    expect(await isMissed(timing, slot, NOW + 1000)).toBe(true);
    expect(nextTimes(timing, slot, late, 1)).toEqual([NOW + 4000]);
    expect(await isMissed(timingOf({ every: 1000, catchUp: 'none', limit: 1 }), slot, late)).toBe(false);
  });

  test('the same for a pattern', async () => {
    const repeat: RepeatOptions = { pattern: '0 * * * *', tz: 'UTC' };
    const noon = { at: Date.parse('2026-11-16T12:00:00Z'), count: 1 };
    const evening = Date.parse('2026-11-16T15:30:00Z');
    expect(at(nextSlot(timingOf(repeat), noon, evening))).toBe(Date.parse('2026-11-16T16:00:00Z'));
    expect(at(nextSlot(timingOf({ ...repeat, catchUp: 'all' }), noon, evening))).toBe(Date.parse('2026-11-16T13:00:00Z'));
    expect(await isMissed(timingOf({ ...repeat, catchUp: 'none' }), noon, evening)).toBe(true);
  });
});

describe('nextTimes', () => {
  test('ends with the schedule', () => {
    expect(nextTimes(timingOf({ every: 1000, limit: 3 }), undefined, NOW, 10)).toEqual([NOW, NOW + 1000, NOW + 2000]);
    expect(nextTimes(timingOf({ every: 1000, endDate: NOW + 500 }), { at: NOW, count: 1 }, NOW, 10)).toEqual([]);
  });

  test.each([0, -1, 1.5, 1001, Number.NaN, '3'])('refuses the count %j', (count) => {
    expect(() => nextTimes(timingOf({ every: 1000 }), undefined, NOW, count as number)).toThrow(/^count must be a whole number/);
  });
});

test('the reported offset is the place between multiples, 0 for patterns', () => {
  expect(offsetOf(timingOf({ every: 1000 }), { at: NOW, count: 1 })).toBe(500);
  expect(offsetOf(timingOf({ every: 1000, offset: 7 }), { at: NOW, count: 1 })).toBe(7);
  expect(offsetOf(timingOf({ pattern: '* * * * *' }), { at: NOW, count: 1 })).toBe(0);
});

test('the key of the older repeat option has its parts in the order of BullMQ 5', () => {
  expect(repeatKey('mail', { every: 1000 })).toBe('mail::::1000');
  expect(repeatKey('mail', { pattern: '0 0 * * *', tz: 'UTC', jobId: 'x', endDate: '2026-12-01T00:00:00Z' })).toBe(
    'mail:x:1796083200000:UTC:0 0 * * *',
  );
  expect(repeatKey('mail', { every: 1000, key: 'mine' })).toBe('mine');
});

describe('hostile options', () => {
  test.each([
    [{ every: 1000, pattern: '* * * * *' }, 'Both .pattern and .every options are defined for this repeatable job'],
    [{}, 'Either .pattern or .every options must be defined for this repeatable job'],
    [{ every: null, pattern: null }, 'Either .pattern or .every options must be defined for this repeatable job'],
    [
      { pattern: '* * * * *', immediately: true, startDate: NOW },
      'Both .immediately and .startDate options are defined for this repeatable job',
    ],
    [{ every: 1000, endDate: NOW }, 'End date must be greater than current timestamp'],
    [{ every: 1000, endDate: '2020-01-01' }, 'End date must be greater than current timestamp'],
  ])("%j are refused with BullMQ's words", (repeat, message) => {
    expect(refusal(repeat)).toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining(message) });
  });

  test.each([undefined, null, 5, 'x', [], () => undefined])('refuses %j instead of options', (repeat) => {
    expect(refusal(repeat)).toMatchObject({ code: 'INVALID_OPTION', option: 'repeat' });
  });

  const NUMBERS = [0, -1, 1.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY, '5', {}, [], true, 5n];
  test.each(['every', 'limit'])('refuses an %s that is no whole number above 0', (option) => {
    for (const value of NUMBERS)
      expect(refusal({ every: 1000, [option]: value }), String(value)).toMatchObject({ code: 'INVALID_OPTION', option });
  });

  test('refuses an offset outside of the interval', () => {
    for (const offset of [-1, 1000, 1.5, Number.NaN, '5'])
      expect(refusal({ every: 1000, offset })).toMatchObject({ code: 'INVALID_OPTION', option: 'offset' });
    expect(refusal({ every: 1000, offset: 999 })).toBe('accepted');
  });

  test.each(['startDate', 'endDate'])('refuses a %s that is no date', (option) => {
    for (const value of ['tomorrow', '', Number.NaN, -5, 1e300, {}, [], true, new Date(Number.NaN)])
      expect(refusal({ every: 1000, [option]: value }), String(value)).toMatchObject({ code: 'INVALID_OPTION', option });
  });

  test.each([
    [{ pattern: 'nonsense' }, 'pattern'],
    [{ pattern: '* * * * *', tz: 'Nope/Zone' }, 'tz'],
    [{ every: 1000, startDate: NOW + 2000, endDate: NOW + 1000 }, 'startDate'],
    [{ every: 1000, immediately: 'yes' }, 'immediately'],
    [{ every: 1000, catchUp: 'some' }, 'catchUp'],
    [{ every: 1000, key: '' }, 'key'],
    [{ every: 1000, jobId: 'x\0' }, 'jobId'],
    [{ evry: 1000 }, 'repeat.evry'],
  ])('refuses %j', (repeat, option) => {
    expect(refusal(repeat)).toMatchObject({ code: 'INVALID_OPTION', option });
  });

  test("points from Bull's cron to pattern", () => {
    expect(refusal({ cron: '* * * * *' })).toMatchObject({
      code: 'OPTION_UNSUPPORTED',
      message: expect.stringContaining('It is called pattern.'),
    });
  });

  test('takes a strange tz beside every, as BullMQ does, and null for unset options', () => {
    expect(timingOf({ every: 1000, tz: 'Nope/Zone', limit: null as never, endDate: null as never })).toEqual({
      every: 1000,
      tz: 'Nope/Zone',
      catchUp: 'one',
    });
  });
});

test('a pattern without tz stays in the zone of the process that made the schedule, wherever its slots are computed', async () => {
  const midnight = Date.parse('2026-11-17T00:00:00+09:00');
  const day = 24 * HOUR;
  for (const [tz, zone] of [
    [undefined, 'Asia/Tokyo'],
    ['Asia/Tokyo', 'Europe/Berlin'],
  ]) {
    const timing = timingOf({ pattern: '0 0 * * *', ...(tz !== undefined && { tz }) });
    const spec = { name: 'j', data: '{}', opts: {}, timing, zone: zone as string };
    expect(await beginning(spec, 0, NOW)).toEqual({ at: midnight, count: 1 });
    expect(await following(spec, { at: midnight, count: 1 }, NOW)).toEqual({ at: midnight + day, count: 2 });
    expect(await slotsAfter(spec, { at: midnight, count: 1 }, NOW, 2)).toEqual([midnight + day, midnight + 2 * day]);
  }
});
