// Schedules: patterns, zones, limits, dates and ids of every shape. Each is accepted, or refused within 50 ms, and then nothing is written.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { timed } from '../support/wait/processor-time.js';
import { ENGINES, type OpenEngine } from './engines.js';
import { oddNumber, oddText, oddValue } from './odd-values.js';
import { holds, PATIENCE } from './property.js';
import { verdictOn, watchForDamage } from './verdict.js';

watchForDamage();

const REFUSALS = ['INVALID_OPTION', 'OPTION_UNSUPPORTED', 'INVALID_JOB_NAME', 'INVALID_PAYLOAD', 'PAYLOAD_TOO_LARGE'];
const OPTIONS =
  'pattern every tz limit startDate endDate immediately offset catchUp overlap key jobId count prevMillis cron odd'.split(' ');
const REFUSED_WITHIN_MS = 50;

const field = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'0123456789*,-/#LW?+ '.split('')), minLength: 1, maxLength: 12 }),
  fc.constantFrom(
    '*',
    '*/0',
    '*/1',
    '1-',
    '-1',
    '5-1',
    '1,,2',
    '99',
    '0',
    '59',
    '23',
    '31',
    '2',
    'mon',
    'MON-fri',
    'feb',
    '1#5',
    'L',
    '1/1e9',
    '1-59/3',
  ),
  fc.integer({ min: 0, max: 500 }).map((length) => `${'1,'.repeat(length)}1`),
);
const cronText = fc.oneof(
  { weight: 6, arbitrary: fc.array(field, { minLength: 4, maxLength: 7 }).map((fields) => fields.join(' ')) },
  {
    weight: 3,
    arbitrary: fc
      .array(fc.constantFrom('*', '1', '2', '*/2', '1-5', '3,4'), { minLength: 5, maxLength: 6 })
      .map((fields) => fields.join(' ')),
  },
  { weight: 2, arbitrary: oddText },
  {
    weight: 1,
    arbitrary: fc.constantFrom('@daily', '@never', '@', '0 0 31 2 *', '0 0 30 2 *', '0 0 29 2 1#5', '* * * * * * 2099'),
  },
);
const zone = fc.oneof(
  oddText,
  fc.constantFrom('UTC', 'Europe/Berlin', 'Mars/Olympus', 'europe/berlin', '+02:00', 'GMT+5', 'Etc/GMT+5', 'EST5EDT', 'local'),
);

/** Calls, and checks the verdict, its time, and that a refusal has written nothing. */
async function judged(queue: Queue, act: () => Promise<unknown>): Promise<boolean> {
  const before = [await queue.count(), await queue.getJobSchedulersCount()];
  const { result, cpuMs } = await timed(() => verdictOn(act));
  const { refused, thrownBack } = result;
  if (refused === undefined && thrownBack === undefined) return true;
  if (refused !== undefined) {
    expect(REFUSALS).toContain(refused.code);
    expect(cpuMs, refused.message).toBeLessThan(REFUSED_WITHIN_MS);
  }
  expect([await queue.count(), await queue.getJobSchedulersCount()]).toEqual(before);
  return false;
}

function inMemory(): Queue {
  const queue = new Queue('work', { connection: new MemoryStore() });
  onTestFinished(() => queue.close());
  return queue;
}

test('odd options of a schedule are accepted or refused', PATIENCE, async () => {
  const queue = inMemory();
  let accepted = 0;
  const options = fc.oneof(
    {
      weight: 9,
      arbitrary: fc.tuple(
        fc.constantFrom({}, { every: 1000 }, { pattern: '* * * * *' }),
        fc.dictionary(fc.constantFrom(...OPTIONS), fc.oneof(oddValue, oddNumber), { maxKeys: 3 }),
      ),
    },
    { weight: 1, arbitrary: fc.tuple(fc.constant({}), oddValue) },
  );
  await holds(options, 2_000, async ([base, odd]) => {
    const given = (): unknown => (typeof odd === 'object' && !Array.isArray(odd) ? { ...base, ...odd } : odd);
    if (!(await judged(queue, async () => queue.upsertJobScheduler('s', given() as object)))) return;
    accepted += 1;
    const found = await queue.getJobScheduler('s');
    expect(found?.key).toBe('s');
    expect(Number.isSafeInteger(found?.next)).toBe(true);
    expect((await queue.nextTimes('s', 3)).every((time) => Number.isSafeInteger(time))).toBe(true);
    await queue.obliterate({ force: true });
  });
  expect(accepted).toBeGreaterThan(50);
});

test('odd patterns and zones are accepted or refused', PATIENCE, async () => {
  const queue = inMemory();
  const accepted = { pattern: 0, refused: 0 };
  await holds(fc.tuple(cronText, fc.option(zone, { nil: 'UTC', freq: 3 })), 2_000, async ([pattern, tz]) => {
    const isAccepted = await judged(queue, () => queue.upsertJobScheduler('s', { pattern, tz }));
    accepted[isAccepted ? 'pattern' : 'refused'] += 1;
    if (!isAccepted) return;
    const times = await queue.nextTimes('s', 3);
    expect(times.length).toBeGreaterThan(0);
    expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
  });
  expect(Math.min(accepted.pattern, accepted.refused)).toBeGreaterThan(50);
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '5', true, {}])('limit %j is refused', async (limit) => {
  const queue = inMemory();
  const upsert = queue.upsertJobScheduler('s', { every: 1000, limit: limit as number });
  await expect(upsert).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'limit' });
  expect(await queue.getJobSchedulersCount()).toBe(0);
});

test('odd templates, positions and repeat options are accepted or refused', PATIENCE, async () => {
  const queue = inMemory();
  await holds(fc.tuple(oddValue, oddValue, oddValue), 500, async ([template, start, end]) => {
    if (await judged(queue, () => queue.upsertJobScheduler('t', { every: 1000 }, template as object)))
      await queue.obliterate({ force: true });
    await judged(queue, () => queue.getJobSchedulers(start as number, end as number));
    await judged(queue, () => queue.getJobScheduler(start as string));
    await judged(queue, () => queue.add('x', {}, { repeat: template as object }));
    await queue.obliterate({ force: true });
  });
});

describe.each(Object.keys(ENGINES))('ids and names on %s', (name) => {
  let engine: OpenEngine;
  beforeAll(async () => {
    engine = await (ENGINES[name] as () => Promise<OpenEngine>)();
  });
  afterAll(() => engine?.close());

  test('of schedules come back as they were, or are refused', PATIENCE, async () => {
    const queue = new Queue('schedules', { connection: engine.connection });
    onTestFinished(() => queue.close());
    const startDate = Date.UTC(2090, 0, 1);
    await holds(fc.tuple(oddText, oddText, oddText), 120, async ([id, jobName, text]) => {
      const isAccepted = await judged(queue, () =>
        queue.upsertJobScheduler(id, { every: 1000, startDate }, { name: jobName, data: { text: Buffer.from(text).toString() } }),
      );
      if (!isAccepted) {
        // An id that is too odd is so for every method.
        const { value, refused } = await verdictOn(() => queue.removeJobScheduler(id));
        expect([refused?.code ?? 'none', value ?? false]).toEqual([refused === undefined ? 'none' : 'INVALID_OPTION', false]);
        return;
      }
      expect(await queue.getJobScheduler(id)).toMatchObject({ key: id, name: jobName, next: startDate });
      expect((await queue.getJobSchedulers()).map(({ key }) => key)).toEqual([id]);
      const job = await queue.getJob(`repeat:${id}:${startDate}`);
      expect([job?.name, job?.repeatJobKey]).toEqual([jobName, id]);
      expect(await queue.nextTimes(id, 2)).toEqual([startDate, startDate + 1000]);
      expect([await queue.pauseJobScheduler(id), (await queue.resumeJobScheduler(id))?.id]).toEqual([true, job?.id]);
      expect([await queue.removeJobScheduler(id), await queue.count(), await queue.getJobSchedulersCount()]).toEqual([
        true,
        0,
        0,
      ]);
    });
  });
});
