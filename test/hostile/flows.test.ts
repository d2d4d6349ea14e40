// Flows and graphs of every shape: each is added as a whole, or refused with a code, and then nothing is written.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { FlowProducer, Queue } from '../../src/index.js';
import type { FlowJob } from '../../src/queue/flow-options.js';
import { MAX_DEPTH, MAX_NODES } from '../../src/queue/flow-options.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { ENGINES, type OpenEngine } from './engines.js';
import { until } from '../support/wait/until.js';
import { oddText, oddValue } from './odd-values.js';
import { holds, PATIENCE } from './property.js';
import { verdictOn, watchForDamage } from './verdict.js';

watchForDamage();

const REFUSALS = [
  'INVALID_OPTION',
  'OPTION_UNSUPPORTED',
  'INVALID_PAYLOAD',
  'PAYLOAD_TOO_LARGE',
  'INVALID_FLOW',
  'INVALID_QUEUE_NAME',
  'INVALID_JOB_NAME',
  'INVALID_JOB_ID',
  'PARENT_MISSING',
  'PARENT_TAKEN',
];

describe.each(Object.entries(ENGINES))('flows on %s', (_, open) => {
  let engine: OpenEngine;
  beforeAll(async () => {
    engine = await open();
  });
  afterAll(() => engine.close());

  function start(): { flow: FlowProducer; queue: Queue } {
    const { connection } = engine;
    const [flow, queue] = [new FlowProducer({ connection }), new Queue('work', { connection })];
    onTestFinished(async () => {
      await queue.obliterate({ force: true });
      await Promise.all([flow.close(), queue.close()]);
    });
    return { flow, queue };
  }

  test('odd nodes are added with their parent, or refused', PATIENCE, async () => {
    const { flow, queue } = start();
    const part = fc.oneof(oddText, oddValue);
    const node = fc.record(
      { name: part, queueName: fc.oneof(fc.constant('work'), part), data: part, opts: part, children: part, prefix: part },
      { requiredKeys: ['name', 'queueName'] },
    );
    let accepted = 0;
    await holds(fc.oneof(node, oddValue), 80, async (child) => {
      const tree = { name: 'root', queueName: 'work', opts: { jobId: 'root' }, children: [child as FlowJob] };
      const { refused } = await verdictOn(() => flow.add(tree));
      if (refused !== undefined) {
        expect(REFUSALS).toContain(refused.code);
        expect(await queue.getJobCountByTypes()).toBe(0);
        return;
      }
      accepted += 1;
      expect(await queue.getJobState('root')).toMatch(/^waiting/);
      await queue.remove('root');
      await queue.obliterate({ force: true });
    });
    expect(accepted).toBeGreaterThan(0);
  });

  test('odd parents are refused, and nothing is added', PATIENCE, async () => {
    const { queue } = start();
    await holds(
      fc.oneof(oddValue, fc.record({ id: fc.oneof(oddText, oddValue), queue: fc.oneof(oddText, oddValue) })),
      60,
      async (parent) => {
        if (parent === undefined || parent === false) return;
        const { refused } = await verdictOn(() => queue.add('x', {}, { parent: parent as never }));
        if (refused !== undefined) expect(REFUSALS).toContain(refused.code);
        expect(await queue.count()).toBe(0);
      },
    );
  });

  test('a deep flow is added, and a deeper one refused', PATIENCE, async () => {
    const { flow, queue } = start();
    const deep = (levels: number): FlowJob => {
      let node: FlowJob = { name: 'leaf', queueName: 'work' };
      for (let level = 1; level < levels; level += 1) node = { name: 'node', queueName: 'work', children: [node] };
      return node;
    };
    await expect(flow.add(deep(MAX_DEPTH + 1))).rejects.toMatchObject({ code: 'INVALID_FLOW' });
    expect(await queue.getJobCountByTypes()).toBe(0);
    const root = await flow.add(deep(200));
    expect(await queue.getJobCounts('waiting', 'waiting-children')).toEqual({ waiting: 1, 'waiting-children': 199 });
    await root.job.remove();
    await until('all levels to be gone', async () => (await queue.getJobCountByTypes()) === 0);
  });
});

describe('a flow that no store sees', () => {
  const flow = new FlowProducer({ connection: 'memory:' });
  afterAll(() => flow.close());
  const node = (n: number): FlowJob => ({ name: 'x', queueName: 'work', opts: { jobId: `id-${n}` } });

  test('is refused with too many jobs', async () => {
    const children = Array.from({ length: MAX_NODES }, (_, n) => node(n));
    await expect(flow.add({ name: 'root', queueName: 'work', children })).rejects.toMatchObject({ code: 'INVALID_FLOW' });
    const nodes = Object.fromEntries(children.concat(node(-1)).map((one, n) => [`n${n}`, { name: one.name, queueName: 'work' }]));
    await expect(flow.addGraph({ nodes, edges: [] })).rejects.toMatchObject({ code: 'INVALID_FLOW' });
  });

  test('is refused with too much data', async () => {
    const children = Array.from({ length: 5 }, () => ({ name: 'x', queueName: 'work', data: 'x'.repeat(8_000_000) }));
    await expect(flow.add({ name: 'root', queueName: 'work', children })).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  });

  test('is refused with an id twice in one queue, and taken with the same id in two queues', async () => {
    await expect(flow.add({ ...node(1), children: [node(1)] })).rejects.toMatchObject({ code: 'INVALID_FLOW' });
    const tree = await flow.add({ ...node(1), children: [{ ...node(1), queueName: 'other' }] });
    expect(tree.children).toHaveLength(1);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['no flow', () => flow.add(undefined as never)],
    ['a list as flow', () => flow.add([] as never)],
    ['a text as children', () => flow.add({ name: 'x', queueName: 'work', children: 'y' as never })],
    ['no list of flows', () => flow.addBulk({} as never)],
    ['nodes that are a list', () => flow.addGraph({ nodes: [] as never, edges: [] })],
    ['an edge of three', () => flow.addGraph({ nodes: {}, edges: [['a', 'b', 'c']] as never })],
    [
      'a node with children',
      () => flow.addGraph({ nodes: { a: { name: 'a', queueName: 'work', children: [] } as never }, edges: [] }),
    ],
    ['a misspelt key', () => flow.add({ name: 'x', queueName: 'work', childern: [] } as never)],
    ['a depth of 0', () => flow.getFlow({ id: 'a', queueName: 'work', depth: 0 })],
    ['an id that is no text', () => flow.getFlow({ id: 5 as never, queueName: 'work' })],
  ])('is refused: %s', async (_title, act) => {
    const { refused } = await verdictOn(act);
    expect([...REFUSALS]).toContain(refused?.code);
  });
});

class PlainStore extends MemoryStore {
  override readonly capabilities = {
    engine: 'plain',
    shared: false,
    durable: false,
    crashHints: false,
    inline: false,
    transactions: false,
  };
}

test('a store without families refuses jobs that would need them, and takes all others', async () => {
  const connection = new PlainStore();
  const [flow, queue] = [new FlowProducer({ connection }), new Queue('work', { connection })];
  onTestFinished(() => Promise.all([flow.close(), queue.close()]).then(() => undefined));
  const refusal = { code: 'OPTION_UNSUPPORTED' };
  await expect(flow.add({ name: 'a', queueName: 'work', children: [{ name: 'b', queueName: 'work' }] })).rejects.toMatchObject(
    refusal,
  );
  // Both adds go in one call.
  const [letter, plain] = await Promise.allSettled([queue.add('a', {}, { deadLetter: 'dead' }), queue.add('a', {})]);
  expect([letter.status, plain.status]).toEqual(['rejected', 'fulfilled']);
  expect((letter as PromiseRejectedResult).reason).toMatchObject(refusal);
  expect(await queue.count()).toBe(1);
});
