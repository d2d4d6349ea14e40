// Compares the cron seam with a slow, obvious search, and with cron-parser, which BullMQ uses.
import { CronExpressionParser } from 'cron-parser';
import { describe, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { cronTimes } from '../../src/job/cron.js';
import { stopwatch } from '../support/wait/stopwatch.js';

function times(pattern: string, tz: string, from: string | number, count: number): string[] {
  const cron = cronTimes(pattern, tz);
  const found: string[] = [];
  let at: number | undefined = new Date(from).getTime();
  while (found.length < count) {
    at = cron.next(at);
    if (at === undefined) break;
    found.push(new Date(at).toISOString().replace('.000', ''));
  }
  return found;
}

function parserTimes(pattern: string, tz: string, from: string, count: number): string[] {
  const cron = CronExpressionParser.parse(pattern, { tz, currentDate: new Date(from) });
  return Array.from({ length: count }, () => cron.next().toDate().toISOString().replace('.000', ''));
}

/** The values of a field of numbers, lists, ranges and steps. */
function valuesOf(field: string, low: number, high: number): Set<number> {
  const values = new Set<number>();
  for (const item of field.split(',')) {
    const [, any, first, last, step] = /^(?:(\*)|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/.exec(item) ?? [];
    const from = any === undefined ? Number(first) : low;
    const to = any !== undefined || (last === undefined && step !== undefined) ? high : Number(last ?? first);
    for (let value = from; value <= to; value += Number(step ?? 1)) values.add(value);
  }
  return values;
}

/** Looks at every minute of UTC. */
function searched(pattern: string, from: number, count: number): string[] {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = pattern.split(' ');
  const minutes = valuesOf(minute, 0, 59);
  const hours = valuesOf(hour, 0, 23);
  const days = valuesOf(day, 1, 31);
  const months = valuesOf(month, 1, 12);
  const weekdays = new Set([...valuesOf(weekday, 0, 7)].map((value) => value % 7));
  const matches = (date: Date): boolean => {
    const byDay = days.has(date.getUTCDate());
    const byWeekday = weekdays.has(date.getUTCDay());
    const either = day !== '*' && weekday !== '*' ? byDay || byWeekday : byDay && byWeekday;
    return either && months.has(date.getUTCMonth() + 1);
  };
  const found: string[] = [];
  let at = Math.floor(from / 60_000 + 1) * 60_000;
  for (let steps = 0; found.length < count && steps < 40_000; steps += 1) {
    const date = new Date(at);
    if (!matches(date)) at = Math.floor(at / 86_400_000 + 1) * 86_400_000;
    else if (!hours.has(date.getUTCHours())) at = Math.floor(at / 3_600_000 + 1) * 3_600_000;
    else {
      if (minutes.has(date.getUTCMinutes())) found.push(date.toISOString().replace('.000', ''));
      at += 60_000;
    }
  }
  return found;
}

describe('times of a pattern', () => {
  test('are those that a search through every minute finds', () => {
    const choices = [
      ['0', '*/15', '5,35', '*', '7', '50/5'],
      ['0', '*', '*/6', '9-17', '23', '2,14'],
      ['*', '1', '31', '29', '1,15', '28-31', '1,2'],
      ['*', '2', '*/3', '3,7', '12'],
      ['*', '1', '0', '7', '5', '1-5', '6,0'],
    ];
    let seed = 20_261_116;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    for (let run = 0; run < 200; run += 1) {
      const pattern = choices.map((list) => list[random(list.length)]).join(' ');
      // Half of them at the end of February, where months of different length meet.
      const from =
        run % 2 === 0
          ? Date.UTC(2024 + random(8), 1, 24 + random(5), random(24), random(60), random(60), random(1000))
          : Date.UTC(2024 + random(8), random(12), 1 + random(31), random(24), random(60), random(60), random(1000));
      const expected = searched(pattern, from, 3);
      // The 31st of February.
      if (expected.length === 0) expect(() => cronTimes(pattern, 'UTC')).toThrow('no date ever matches it');
      else expect(times(pattern, 'UTC', from, 3), `${pattern} from ${new Date(from).toISOString()}`).toEqual(expected);
    }
  });

  test.each([
    ['0 0 1 * 1', '2026-02-25T00:00:00Z', ['2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z']],
    ['0 0 29 2 *', '2097-01-01T00:00:00Z', ['2104-02-29T00:00:00Z']],
    ['0 0 L * *', '2026-02-01T00:00:00Z', ['2026-02-28T00:00:00Z', '2026-03-31T00:00:00Z']],
    ['0 0 * * 1#5', '2026-02-20T00:00:00Z', ['2026-03-30T00:00:00Z']],
    ['0 0 * * 5L', '2026-02-20T00:00:00Z', ['2026-02-27T00:00:00Z', '2026-03-27T00:00:00Z']],
    ['0 12 ? * MON-FRI', '2026-11-13T13:00:00Z', ['2026-11-16T12:00:00Z']],
    ['*/20 * * * * *', '2026-11-13T13:00:20Z', ['2026-11-13T13:00:40Z', '2026-11-13T13:01:00Z']],
    ['  @Daily ', '2026-11-13T00:00:00Z', ['2026-11-14T00:00:00Z']],
    ['@weekends', '2026-11-13T00:00:00Z', ['2026-11-14T00:00:00Z', '2026-11-15T00:00:00Z']],
    ['0 0 * JAN,jul *', '2026-11-13T00:00:00Z', ['2027-01-01T00:00:00Z']],
  ])('%s after %s', (pattern, from, expected) => {
    expect(times(pattern, 'UTC', from, expected.length)).toEqual(expected);
  });

  test('come strictly after the given moment', () => {
    expect(times('0 0 * * *', 'UTC', '2026-01-01T00:00:00.000Z', 1)).toEqual(['2026-01-02T00:00:00Z']);
    expect(times('0 0 * * *', 'UTC', '2025-12-31T23:59:59.999Z', 1)).toEqual(['2026-01-01T00:00:00Z']);
  });
});

describe('when the clock changes', () => {
  // Berlin: 02:00 → 03:00 on 29 March, 03:00 → 02:00 on 25 October.
  test.each([
    [
      'a skipped time of day comes right after the gap',
      '30 2 * * *',
      '2026-03-28T12:00:00Z',
      ['2026-03-29T01:00:00Z', '2026-03-30T00:30:00Z'],
    ],
    [
      'skipped times of day come together',
      '15,45 2 * * *',
      '2026-03-28T12:00:00Z',
      ['2026-03-29T01:00:00Z', '2026-03-30T00:15:00Z'],
    ],
    [
      'a skipped time in a list of hours comes',
      '0 2,14 * * *',
      '2026-03-28T13:00:00Z',
      ['2026-03-29T01:00:00Z', '2026-03-29T12:00:00Z'],
    ],
    ['a repeated time of day comes once', '30 2 * * *', '2026-10-24T12:00:00Z', ['2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z']],
    [
      'a repeated time does not come again, asked from the repeated hour',
      '30 2 * * *',
      '2026-10-25T01:10:00Z',
      ['2026-10-26T01:30:00Z'],
    ],
    [
      'a repeated time in a list of hours comes once',
      '0 2,14 * * *',
      '2026-10-24T13:00:00Z',
      ['2026-10-25T00:00:00Z', '2026-10-25T13:00:00Z'],
    ],
    [
      'skipped times of an interval do not come',
      '*/30 1-3 * * *',
      '2026-03-28T23:59:00Z',
      ['2026-03-29T00:00:00Z', '2026-03-29T00:30:00Z', '2026-03-29T01:00:00Z'],
    ],
    [
      'an interval of hours leaves the skipped hour out',
      '0 */2 * * *',
      '2026-03-28T22:59:00Z',
      ['2026-03-28T23:00:00Z', '2026-03-29T02:00:00Z'],
    ],
    [
      'an interval goes on through the repeated hour',
      '*/30 * * * *',
      '2026-10-25T00:00:00Z',
      ['2026-10-25T00:30:00Z', '2026-10-25T01:00:00Z', '2026-10-25T01:30:00Z', '2026-10-25T02:00:00Z'],
    ],
  ])('%s', (_what, pattern, from, expected) => {
    expect(times(pattern, 'Europe/Berlin', from, expected.length)).toEqual(expected);
  });

  test('midnight that the clock skips comes at one', () => {
    expect(times('0 0 * * *', 'America/Santiago', '2026-09-05T12:00:00Z', 2)).toEqual([
      '2026-09-06T04:00:00Z',
      '2026-09-07T03:00:00Z',
    ]);
  });

  test.each([
    ['America/Nuuk', '30 23 27 3 *', '2027-01-01T00:00:00Z', ['2027-03-28T01:00:00Z', '2028-03-28T00:30:00Z']],
    [
      'America/Scoresbysund',
      '30 23 * * *',
      '2027-03-27T00:30:00Z',
      ['2027-03-27T01:30:00Z', '2027-03-28T01:00:00Z', '2027-03-29T00:30:00Z'],
    ],
    // 30 December 2011 does not exist there.
    [
      'Pacific/Apia',
      '0 12 * 12 *',
      '2011-12-29T00:00:00Z',
      ['2011-12-29T22:00:00Z', '2011-12-30T10:00:00Z', '2011-12-30T22:00:00Z'],
    ],
    // A gap, and a repetition, of half an hour.
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00:00Z', ['2026-10-03T15:30:00Z', '2026-10-04T15:15:00Z']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T00:00:00Z', ['2026-04-04T14:45:00Z', '2026-04-05T15:15:00Z']],
    ['Asia/Kathmandu', '0 0 1 1 *', '2026-06-01T00:00:00Z', ['2026-12-31T18:15:00Z']],
  ])('in %s, "%s" has its times', (tz, pattern, from, expected) => {
    expect(times(pattern, tz, from, expected.length)).toEqual(expected);
  });

  test('a day has each of its times exactly once, in every zone, through a year', () => {
    for (const tz of [
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'America/Santiago',
      'Africa/Cairo',
      'Asia/Kolkata',
    ]) {
      const day = new Intl.DateTimeFormat('sv', { timeZone: tz, dateStyle: 'short' });
      const days = times('15 2 * * *', tz, '2026-01-01T12:00:00Z', 364).map((time) => day.format(new Date(time)));
      expect(new Set(days).size, tz).toBe(364);
      expect(days.at(-1), tz).toMatch(/^2026-12-31|2027-01-01$/);
    }
  });
});

describe('beside cron-parser', () => {
  const PATTERNS = [
    '*/15 * * * *',
    '0 3 * * *',
    '30 1 * * *',
    '0 0 * * *',
    '*/30 * * * * *',
    '0 9 * * 7',
    '0 9 * * 0',
    '0 0 29 2 *',
  ];
  const MORE = [
    '0 12 ? * MON-FRI',
    '5/10 * * * *',
    '0 0 * * 5L',
    '0 0 * * 1#2',
    '@daily',
    '@weekdays',
    '0 0 1 * 1',
    '0 0 1,15 * *',
  ];
  const ZONES = ['Europe/Berlin', 'America/New_York'];
  const FROM = ['2026-03-28T20:00:00Z', '2026-10-24T20:00:00Z', '2026-02-27T23:59:59.999Z'];

  test.each([...PATTERNS, ...MORE])('%s has the same times', (pattern) => {
    for (const tz of ZONES) {
      for (const from of FROM) expect(times(pattern, tz, from, 3), `${tz} ${from}`).toEqual(parserTimes(pattern, tz, from, 3));
    }
  });

  test('the known differences are those of the module header', () => {
    const spring = ['Europe/Berlin', '2026-03-28T23:30:00Z'] as const;
    expect(parserTimes('30 2 * * *', ...spring, 1)).toEqual(['2026-03-29T01:30:00Z']);
    expect(times('30 2 * * *', ...spring, 1)).toEqual(['2026-03-29T01:00:00Z']);
    expect(parserTimes('0 */2 * * *', ...spring, 1)).toEqual(['2026-03-29T01:00:00Z']);
    expect(times('0 */2 * * *', ...spring, 1)).toEqual(['2026-03-29T02:00:00Z']);
    const howe = ['Australia/Lord_Howe', '2026-03-28T20:00:00Z'] as const;
    // cron-parser throws "loop limit exceeded" here, after seconds.
    expect(times('0 9 * * 7', ...howe, 2)).toEqual(['2026-03-28T22:00:00Z', '2026-04-04T22:30:00Z']);
  });
});

describe('hostile input', () => {
  const PATTERNS: unknown[] = [
    ...[
      '',
      '   ',
      '* * * *',
      '* * * * * * *',
      '* * * * * * * *',
      'a b c d e',
      '60 * * * *',
      '* 24 * * *',
      '* * 32 * *',
      '* * 0 * *',
    ],
    ...[
      '* * * 13 *',
      '* * * * 8',
      '*/0 * * * *',
      '*/-1 * * * *',
      '1-0 * * * *',
      '0 22-2 * * *',
      '0 0 30 2 *',
      '0 0 31 4,6 *',
      '1,,2 * * * *',
    ],
    ...[
      '0 0 1--100000000 * *',
      '0-59/1--1 * * * *',
      '1-99999999999 * * * *',
      '*/99999999999999999999 * * * *',
      '1e1 * * * *',
      '0.5 * * * *',
    ],
    ...[
      'TZ=UTC * * * * *',
      'H * * * *',
      '@reboot',
      '@never',
      '__proto__',
      '@constructor',
      '2026-12-01T00:00:00',
      '0 0 1 * +1',
      '?? * * * *',
    ],
    ...['٠ * * * *', '* * * * *; rm -rf /', '\0 * * * *', `${'1,'.repeat(100_000)}1 * * * *`, `* * * * ${' '.repeat(100_000)}`],
    ...[5, 0, null, undefined, {}, [], ['* * * * *'], true, Symbol.iterator, () => '* * * * *', new Date()],
  ];

  test.each(PATTERNS.map((pattern) => [typeof pattern === 'string' ? pattern.slice(0, 40) : String(pattern), pattern]))(
    'refuses the pattern %j at once',
    (_shown, pattern) => {
      const took = stopwatch();
      expect(() => cronTimes(pattern, 'UTC')).toThrow(
        expect.objectContaining({ constructor: HoldfastError, code: 'INVALID_OPTION', option: 'pattern' }),
      );
      expect(took()).toBeLessThan(1000);
    },
  );

  test.each(['Nope/Zone', '', '+02:00', '-5', 'Europe/Berlin\0', '../../etc/passwd', 'x'.repeat(101), 5, {}, ['UTC']])(
    'refuses the zone %j',
    (tz) => {
      expect(() => cronTimes('* * * * *', tz)).toThrow(
        expect.objectContaining({ constructor: HoldfastError, code: 'INVALID_OPTION', option: 'tz' }),
      );
    },
  );

  test('says what is wrong with a pattern', () => {
    expect(() => cronTimes('60 * * * *', 'UTC')).toThrow(/"60 \* \* \* \*" is none: Invalid value for minute: 60\./);
    expect(() => cronTimes('0 0 30 2 *', 'UTC')).toThrow(/no date ever matches it\.$/);
  });
});
