// Groups: ids and limits of every shape. Each is accepted and read back as it was, or refused, and then nothing is written.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Queue, Worker } from '../../src/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { ENGINES, type OpenEngine } from './engines.js';
import { oddNumber, oddText, oddValue } from './odd-values.js';
import { holds, PATIENCE } from './property.js';
import { verdictOn, watchForDamage } from './verdict.js';

watchForDamage();

const REFUSALS = ['INVALID_OPTION', 'OPTION_UNSUPPORTED', 'INVALID_PAYLOAD', 'PAYLOAD_TOO_LARGE'];

/** Calls, and checks that a refusal has a known code and has written nothing. Returns whether it was accepted. */
async function judged(queue: Queue, act: () => Promise<unknown>): Promise<boolean> {
  const before = [await queue.count(), await queue.getGroupsCount()];
  const { refused, thrownBack } = await verdictOn(act);
  if (refused === undefined && thrownBack === undefined) return true;
  if (refused !== undefined) expect(REFUSALS).toContain(refused.code);
  expect([await queue.count(), await queue.getGroupsCount()]).toEqual(before);
  return false;
}

describe.each(Object.entries(ENGINES))('ids of groups on %s', (_, open) => {
  let engine: OpenEngine;
  beforeAll(async () => {
    engine = await open();
  });
  afterAll(() => engine.close());

  test('odd ids are accepted and read back, or refused', PATIENCE, async () => {
    const queue = new Queue('work', { connection: engine.connection });
    onTestFinished(() => queue.close());
    let accepted = 0;
    await holds(fc.oneof(oddText, oddNumber, oddValue), 60, async (id) => {
      const group = { id: id as string };
      if (!(await judged(queue, () => queue.add('x', {}, { group })))) return;
      accepted += 1;
      const [found] = await queue.getGroups();
      expect(found).toEqual({ id: String(id), status: 'waiting', active: 0 });
      await queue.pauseGroup(String(id));
      expect((await queue.getGroupJobs(String(id))).map(({ gid }) => gid)).toEqual([String(id)]);
      await queue.obliterate({ force: true });
      expect(await queue.getGroupsCount()).toBe(0);
    });
    expect(accepted).toBeGreaterThan(5);
  });
});

test('odd groups, limits and times are accepted or refused', PATIENCE, async () => {
  const connection = new MemoryStore();
  const queue = new Queue('work', { connection });
  onTestFinished(() => queue.close());
  const worker = new Worker('work', null, { connection });
  onTestFinished(() => worker.close());
  await holds(
    fc.tuple(oddValue, fc.oneof(oddValue, oddNumber), fc.oneof(oddValue, oddNumber)),
    500,
    async ([one, two, three]) => {
      const [group, limit, ms] = [one, two, three] as [never, never, never];
      await judged(queue, () => queue.add('x', {}, { group }));
      await judged(queue, () => queue.setGroupConcurrency(group, limit));
      await judged(queue, () => queue.setGroupRateLimit('g', limit, ms));
      await judged(queue, () => queue.rateLimitGroup('g', ms));
      await judged(queue, () => queue.getGroups(limit, 5));
      await judged(queue, () => queue.getGroupJobs('g', limit, ms));
      await judged(queue, () => worker.rateLimitGroup({ gid: group } as never, ms));
      await judged(queue, async () => new Worker('work', null, { connection, group }).close());
      await queue.obliterate({ force: true });
    },
  );
});

test('an id that changes while it is read is refused or stored as a text that every store can keep', async () => {
  const queue = new Queue('work', { connection: new MemoryStore() });
  onTestFinished(() => queue.close());
  let reads = 0;
  const group = {
    get id() {
      reads += 1;
      return reads === 1 ? 'a' : ('b\0' as string);
    },
  };
  await expect(queue.add('x', {}, { group })).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'group.id' });
  expect(await queue.count()).toBe(0);
});
