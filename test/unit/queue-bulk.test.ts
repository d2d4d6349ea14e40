import { afterEach, beforeEach, expect, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';

const GOOD = { name: 'a', data: {} };

let store: FaultyStore;
let queue: Queue;

beforeEach(() => {
  store = new FaultyStore(new MemoryStore());
  queue = new Queue('mail', { connection: store });
});
afterEach(() => queue.close());

async function refusal(...jobs: unknown[]): Promise<unknown> {
  const error: unknown = await queue.addBulk(jobs as never).catch((thrown: unknown) => thrown);
  expect([store.calls('add'), store.calls('schedule')]).toEqual([0, 0]);
  return error;
}

test.each([
  [{ ...GOOD, opts: { delay: -1 } }, 'INVALID_OPTION', /^jobs\[2\]\.opts\.delay must be/],
  [{ ...GOOD, opts: { dely: 5 } }, 'INVALID_OPTION', /^There is no job option jobs\[2\]\.opts\.dely: did you mean delay/],
  [{ ...GOOD, opts: 5 }, 'INVALID_OPTION', /^jobs\[2\]\.opts must be an object/],
  [{ ...GOOD, opts: { jobId: '5' } }, 'INVALID_JOB_ID', /^jobs\[2\]: Job id "5" is a bare integer/],
  [{ name: '', data: {} }, 'INVALID_JOB_NAME', /^jobs\[2\]: Job name "" must not be empty/],
  [{ name: 'a', data: { f: () => 1 } }, 'INVALID_PAYLOAD', /^jobs\[2\]: /],
  [{ ...GOOD, options: { delay: 5 } }, 'INVALID_OPTION', /^jobs\[2\]\.options must be called opts/],
  [{ name: 'a', dta: {} }, 'INVALID_OPTION', /jobs\[2\]\.dta: did you mean data/],
  [{ ...GOOD, children: [] }, 'OPTION_UNSUPPORTED', /jobs\[2\]\.children/],
  [undefined, 'INVALID_OPTION', /^jobs\[2\] must be \{ name, data, opts \}/],
  [{ ...GOOD, opts: { repeat: { evry: 5 } } }, 'INVALID_OPTION', /^jobs\[2\]: .*repeat\.evry/],
])('addBulk names the item and adds nothing when an item is %j', async (job, code, message) => {
  expect(await refusal(GOOD, GOOD, job, GOOD)).toMatchObject({ code, message: expect.stringMatching(message) });
});

test('addBulk counts items with the option repeat when it names a later item', async () => {
  const repeated = { ...GOOD, opts: { repeat: { every: 5000 } } };
  const message = expect.stringMatching(/^jobs\[3\]\.opts\.delay/);
  expect(await refusal(repeated, GOOD, repeated, { ...GOOD, opts: { delay: -1 } })).toMatchObject({ message });
});

test('addBulk reports a closed queue without naming an item', async () => {
  await queue.close();
  expect(await refusal(GOOD)).toMatchObject({ code: 'CLOSED', message: expect.not.stringContaining('jobs[') });
});
