// Flows as users of BullMQ know them, and graphs, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import type { Job } from '../../src/handle/job.js';
import { UnrecoverableError, WaitingChildrenError } from '../../src/job/signals.js';
import type { FlowJob } from '../../src/queue/flow-options.js';
import { FlowProducer } from '../../src/queue/flow-producer.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

type Handler = (job: Job, token: string) => unknown;

describe.each(ENGINES)('flows on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, queue: name } = await scene(engine);
    const [roots, parts] = [`${name}-roots`, `${name}-parts`];
    const flow = kept(new FlowProducer({ connection }));
    const [rootQueue, partQueue] = [roots, parts].map((queue) => kept(new Queue(queue, { connection }))) as [Queue, Queue];
    const work = (queue: string, handler: Handler, options = {}): Worker =>
      kept(new Worker(queue, handler as (job: Job) => Promise<unknown>, { connection, drainDelay: 1, ...options }));
    const part = (id: string, opts: object = {}, more: Partial<FlowJob> = {}): FlowJob => ({
      name: 'part',
      queueName: parts,
      data: { id },
      opts: { jobId: id, ...opts },
      ...more,
    });
    const root = (children: FlowJob[], opts: object = {}): FlowJob => ({
      name: 'root',
      queueName: roots,
      opts: { jobId: 'root', ...opts },
      children,
    });
    const state = (queue: Queue, id: string): Promise<string> => queue.getJobState(id);
    const key = (id: string): string => `bull:${parts}:${id}`;
    return { connection, flow, roots, parts, rootQueue, partQueue, work, part, root, state, key };
  }

  test('S6-1 three levels over three queues run from the leaves to the root, with the values of the children', async () => {
    const { connection, flow, roots, parts, work } = await start();
    const leaves = `${parts}-leaves`;
    const order: string[] = [];
    const values: Record<string, unknown> = {};
    const run: Handler = async (job) => {
      order.push(job.name);
      values[job.name] = Object.values<string>(await job.getChildrenValues()).toSorted((a, b) => a.localeCompare(b));
      return `of ${job.name}`;
    };
    const leaf = (name: string): FlowJob => ({ name, queueName: leaves });
    const tree = await flow.add({
      name: 'root',
      queueName: roots,
      children: [
        { name: 'left', queueName: parts, children: [leaf('a'), leaf('b')] },
        { name: 'right', queueName: parts, children: [leaf('c')] },
      ],
    });
    const events = kept(new QueueEvents(roots, { connection }));
    await events.waitUntilReady();
    for (const queue of [roots, parts, leaves]) work(queue, run, { concurrency: 2 });
    expect(await tree.job.waitUntilFinished(events)).toBe('of root');
    expect(order.at(-1)).toBe('root');
    expect(order.indexOf('left')).toBeGreaterThan(Math.max(order.indexOf('a'), order.indexOf('b')));
    expect(order.indexOf('right')).toBeGreaterThan(order.indexOf('c'));
    expect(order).toHaveLength(6);
    expect(values).toMatchObject({ root: ['of left', 'of right'], left: ['of a', 'of b'], right: ['of c'], a: [] });
  });

  test('S6-1 the jobs of a flow show their states, ids and parents', async () => {
    const { flow, part, root, rootQueue, partQueue, roots, key } = await start();
    const tree = await flow.add(
      root([part('a', { delay: 60_000 }), part('b', { priority: 2 }), { name: 'c', queueName: roots, children: [] }]),
    );
    expect(tree.children?.map(({ children }) => children)).toEqual([undefined, undefined, undefined]);
    const third = tree.children?.[2]?.job;
    expect(third?.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(await rootQueue.getJobCounts('waiting-children', 'waiting')).toEqual({ 'waiting-children': 1, waiting: 1 });
    expect((await rootQueue.getWaitingChildren()).map(({ id }) => id)).toEqual(['root']);
    expect(await rootQueue.getWaitingChildrenCount()).toBe(1);
    expect([await partQueue.getJobState('a'), await partQueue.getJobState('b')]).toEqual(['delayed', 'prioritized']);
    const child = await partQueue.getJob('a');
    expect([child?.parent, child?.parentKey]).toEqual([{ id: 'root', queueKey: `bull:${roots}` }, `bull:${roots}:root`]);
    expect(tree.children?.[0]?.job.parentKey).toBe(`bull:${roots}:root`);
    expect(await tree.job.isWaitingChildren()).toBe(true);
    expect((await tree.job.getDependencies()).unprocessed?.toSorted()).toEqual(
      [key('a'), key('b'), `bull:${roots}:${third?.id}`].toSorted(),
    );
  });

  const failures: [option: string, state: string, reason: RegExp | undefined][] = [
    ['failParentOnFailure', 'failed', /^child bull:.*-parts:a failed$/],
    ['continueParentOnFailure', 'completed', undefined],
    ['ignoreDependencyOnFailure', 'completed', undefined],
    ['removeDependencyOnFailure', 'completed', undefined],
  ];
  test.each(failures)('S6-2 %s: the failure of the only child lets its parent become %s', async (option, state, reason) => {
    const { flow, work, part, root, roots, parts, rootQueue, key } = await start();
    await flow.add(root([part('a', { [option]: true })]));
    let ran = 0;
    work(roots, async (job) => {
      ran += 1;
      return job.getIgnoredChildrenFailures();
    });
    work(parts, () => Promise.reject(new Error('broken')));
    await until(`the parent to be ${state}`, async () => (await rootQueue.getJobState('root')) === state);
    const parent = await rootQueue.getJob('root');
    if (reason !== undefined) expect(parent?.failedReason).toMatch(reason);
    expect(ran).toBe(state === 'failed' ? 0 : 1);
    const ignores = option === 'continueParentOnFailure' || option === 'ignoreDependencyOnFailure';
    if (state === 'completed') expect(parent?.returnvalue).toEqual(ignores ? { [key('a')]: 'broken' } : {});
  });

  test('S6-2 without an option a failed child keeps its parent waiting until it is retried', async () => {
    const { flow, work, part, root, roots, parts, rootQueue, partQueue } = await start();
    await flow.add(root([part('a')]));
    let broken = true;
    work(roots, () => 'done');
    work(parts, () => {
      if (broken) throw new Error('broken');
      return 1;
    });
    await until('the child to fail', async () => (await partQueue.getJobState('a')) === 'failed');
    expect(await rootQueue.getJobState('root')).toBe('waiting-children');
    broken = false;
    await (await partQueue.getJob('a'))?.retry();
    await until('the parent to complete', async () => (await rootQueue.getJobState('root')) === 'completed');
  });

  test('S6-2 exclusive options, and deduplication inside a flow, are refused and nothing is added', async () => {
    const { flow, part, root, rootQueue, partQueue } = await start();
    const bad = [
      part('a', { failParentOnFailure: true, ignoreDependencyOnFailure: true }),
      part('a', { deduplication: { id: 'd' } }),
      part('a', { parent: { id: 'x', queue: 'y' } }),
    ];
    for (const one of bad) await expect(flow.add(root([one]))).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await expect(flow.add(root([part('a')], { deduplication: { id: 'd' } }))).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    expect([await rootQueue.count(), await partQueue.count()]).toEqual([0, 0]);
  });

  test('S6-2 a flow of one job is deduplicated as an add of its queue is, and nodes without edges in a graph are refused', async () => {
    const { flow, rootQueue } = await start();
    const lone = (n: number) => ({
      name: 'lone',
      queueName: rootQueue.name,
      data: { n },
      opts: { deduplication: { id: 'd' }, delay: 60_000 },
    });
    const { job: first } = await flow.add(lone(1));
    const { job: second } = await flow.add(lone(2));
    const [third] = await flow.addBulk([lone(3)]);
    const { only: fourth } = await flow.addGraph({ nodes: { only: lone(4) }, edges: [] });
    for (const job of [second, third?.job, fourth]) expect(job).toMatchObject({ id: first.id, data: { n: 1 }, duplicate: true });
    expect(first.duplicate).toBe(false);
    expect(await rootQueue.count()).toBe(1);
    expect((await rootQueue.add('lone', {}, { deduplication: { id: 'd' } })).id).toBe(first.id);
    const graph = { nodes: { a: lone(5), b: { name: 'b', queueName: rootQueue.name } }, edges: [] };
    await expect(flow.addGraph(graph)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'nodes.a.opts.deduplication' });
    expect(await rootQueue.count()).toBe(1);
  });

  test('S6-5 a handler adds children, waits for them, and goes on with their values', async () => {
    const { work, roots, parts, rootQueue, partQueue } = await start();
    const starts: number[] = [];
    work(roots, async (job, token) => {
      starts.push(job.attemptsStarted);
      if (starts.length === 1) {
        await partQueue.add('part', {}, { jobId: 'late', parent: { id: job.id, queue: job.queueQualifiedName } });
        if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError();
      }
      expect(await job.moveToWaitingChildren(token)).toBe(false);
      return Object.values(await job.getChildrenValues());
    });
    const job = await rootQueue.add('root', {}, { jobId: 'root' });
    await until('the parent to wait', async () => (await job.getState()) === 'waiting-children');
    work(parts, () => 'late value');
    await until('the parent to complete', async () => (await job.getState()) === 'completed');
    const done = await rootQueue.getJob('root');
    expect([done?.returnvalue, done?.attemptsMade, starts]).toEqual([['late value'], 1, [1, 2]]);
  });

  test('S6-5 a job that completes while a child is pending fails, and one with a failed child cannot complete', async () => {
    const { work, part, root, flow, roots, parts, rootQueue, partQueue } = await start();
    await flow.add(root([part('a', { continueParentOnFailure: true }), part('b', { delay: 600_000 })]));
    const worker = work(roots, () => 'too early');
    work(parts, () => Promise.reject(new Error('broken')));
    await until('the parent to fail', async () => (await rootQueue.getJobState('root')) === 'failed');
    expect((await rootQueue.getJob('root'))?.failedReason).toBe('Job root has pending dependencies. moveToFinished');
    await worker.close();
    // A second parent, whose child fails while it runs, has attempts left and uses none of them.
    const second = await rootQueue.add('root', {}, { jobId: 'second', attempts: 5 });
    work(roots, async () => {
      await partQueue.add(
        'part',
        {},
        { jobId: 'c', failParentOnFailure: true, parent: { id: 'second', queue: rootQueue.qualifiedName } },
      );
      await until('the child to fail', async () => (await partQueue.getJobState('c')) === 'failed');
      await until('the link to fail', async () => (await second.getDependenciesCount()).failed === 1);
    });
    await until('the second to fail', async () => (await second.getState()) === 'failed');
    const text = 'Cannot complete job second because it has at least one failed child. moveToFinished';
    const failed = await rootQueue.getJob('second');
    expect([failed?.failedReason, failed?.attemptsMade]).toEqual([text, 1]);
  });

  test('S6-6 a parent is removed with all its children, or without them, and not while one runs', async () => {
    const { flow, part, root, rootQueue, partQueue, work, parts } = await start();
    await flow.add(root([part('a'), part('b', {}, { children: [part('b1')] })]));
    let release = (): void => undefined;
    const worker = work(parts, () => new Promise<void>((resolve) => (release = resolve)));
    await until('a child to run', async () => (await partQueue.getActiveCount()) === 1);
    await expect((await rootQueue.getJob('root'))?.remove()).rejects.toMatchObject({ code: 'JOB_LOCKED' });
    expect(await rootQueue.remove('root')).toBe(0);
    const closed = worker.close();
    await until('the handler to wait', () => release !== undefined);
    release();
    await closed;
    expect(await rootQueue.remove('root')).toBe(1);
    await until('the children to be gone', async () => (await partQueue.getJobCountByTypes()) === 0);
    await flow.add(root([part('c')]));
    expect(await rootQueue.remove('root', { removeChildren: false })).toBe(1);
    expect(await partQueue.getJobState('c')).toBe('waiting');
  });

  test('S6-6 removing, draining or obliterating the children lets the parent go on', async () => {
    const { flow, part, root, rootQueue, partQueue } = await start();
    for (const remove of [
      () => partQueue.remove('a'),
      () => partQueue.drain(),
      () => partQueue.clean(0, 0, 'wait'),
      () => partQueue.obliterate(),
    ]) {
      await flow.add(root([part('a')]));
      await remove();
      await until('the parent to wait', async () => (await rootQueue.getJobState('root')) === 'waiting');
      await rootQueue.remove('root');
    }
    // A parent in the same queue is removed with its last child.
    await flow.add({ ...root([part('a')]), queueName: partQueue.name });
    await partQueue.drain();
    expect(await partQueue.getJobState('root')).toBe('unknown');
    await flow.add(root([part('a'), part('b')]));
    await rootQueue.obliterate();
    expect(await rootQueue.getJobState('root')).toBe('unknown');
    expect(await partQueue.getJobCounts('waiting')).toEqual({ waiting: 2 });
  });

  test('S6-7 getFlow reads the tree, and getDependencies reads it in pages', async () => {
    const { flow, part, root, rootQueue, partQueue, roots, key } = await start();
    const children = Array.from({ length: 30 }, (_, n) => part(`kid-${n}`));
    const { job } = await flow.add(root([...children, part('deep', {}, { children: [part('deeper')] })]));
    const tree = await flow.getFlow({ id: 'root', queueName: roots, maxChildren: 40 });
    expect(tree?.children).toHaveLength(31);
    const deep = tree?.children?.find((node) => node.job.id === 'deep');
    expect(deep?.children?.map((node) => node.job.id)).toEqual(['deeper']);
    expect((await flow.getFlow({ id: 'root', queueName: roots }))?.children).toHaveLength(20);
    expect((await flow.getFlow({ id: 'root', queueName: roots, depth: 1 }))?.children).toBeUndefined();
    expect(await flow.getFlow({ id: 'nowhere', queueName: roots })).toBeUndefined();
    const found: string[] = [];
    for (let cursor = 0, pages = 0; pages < 9; pages += 1) {
      const page = await job.getDependencies({ unprocessed: { cursor, count: 10 } });
      expect(Object.keys(page).toSorted()).toEqual(['nextUnprocessedCursor', 'unprocessed']);
      found.push(...(page.unprocessed ?? []));
      cursor = page.nextUnprocessedCursor ?? 0;
      if (cursor === 0) break;
    }
    expect(new Set(found).size).toBe(31);
    expect(found).toHaveLength(31);
    expect(await job.getDependenciesCount()).toEqual({ processed: 0, unprocessed: 31, failed: 0, ignored: 0 });
    const listed = await rootQueue.getDependencies('root', 'pending', 0, 4);
    expect([listed.items.length, listed.total]).toEqual([5, 31]);
    expect(await rootQueue.getDependencies('root', 'processed')).toEqual({ items: [], jobs: [], total: 0 });
    const child = await partQueue.getJob('kid-0');
    expect(await child?.removeChildDependency()).toBe(true);
    expect([child?.parent, child?.parentKey]).toEqual([undefined, undefined]);
    expect((await job.getDependencies()).unprocessed).not.toContain(key('kid-0'));
    await job.removeUnprocessedChildren();
    await until('the parent to wait', async () => (await rootQueue.getJobState('root')) === 'waiting');
    expect(await partQueue.getJobCountByTypes()).toBe(1);
  });

  test('S6-7 a missing parent and a second parent are refused, and nothing is added', async () => {
    const { flow, part, root, partQueue, rootQueue, roots } = await start();
    await expect(partQueue.add('part', {}, { parent: { id: 'nowhere', queue: `bull:${roots}` } })).rejects.toMatchObject({
      code: 'PARENT_MISSING',
      message: `Missing key for parent job bull:${roots}:nowhere. addJob`,
    });
    await flow.add(root([part('a')]));
    await expect(flow.add(root([part('a')], { jobId: 'other' }))).rejects.toMatchObject({
      code: 'PARENT_TAKEN',
      message: `The parent job bull:${roots}:other cannot be replaced. addJob`,
    });
    expect([await rootQueue.getJobState('other'), await partQueue.count()]).toEqual(['unknown', 1]);
  });

  test('S6-8 a graph runs each job after all those that it waits for', async () => {
    const { flow, work, parts, roots, rootQueue } = await start();
    const order: string[] = [];
    const run: Handler = (job) => void order.push(job.name);
    const node = (name: string, queueName = parts) => ({ name, queueName });
    const jobs = await flow.addGraph({
      nodes: { fetch: node('fetch'), resize: node('resize'), tag: node('tag'), publish: node('publish', roots) },
      edges: [
        ['fetch', 'resize'],
        ['fetch', 'tag'],
        ['resize', 'publish'],
        ['tag', 'publish'],
      ],
    });
    expect(Object.keys(jobs).toSorted()).toEqual(['fetch', 'publish', 'resize', 'tag']);
    for (const queue of [roots, parts]) work(queue, run);
    await until('the last job', async () => (await rootQueue.getCompletedCount()) === 1);
    expect([order[0], order[3]]).toEqual(['fetch', 'publish']);
  });

  test('S6-8 a cycle is refused, and so are names that do not exist', async () => {
    const { flow, partQueue, parts } = await start();
    const nodes = { a: { name: 'a', queueName: parts }, b: { name: 'b', queueName: parts } };
    const cycle = flow.addGraph({
      nodes,
      edges: [
        ['a', 'b'],
        ['b', 'a'],
      ],
    });
    await expect(cycle).rejects.toMatchObject({ code: 'INVALID_FLOW' });
    // @ts-expect-error there is no node c
    await expect(flow.addGraph({ nodes, edges: [['a', 'c']] })).rejects.toMatchObject({ code: 'INVALID_FLOW' });
    const self: FlowJob = { name: 'self', queueName: parts };
    self.children = [self];
    await expect(flow.add(self)).rejects.toMatchObject({ code: 'INVALID_FLOW' });
    expect(await partQueue.count()).toBe(0);
  });

  test('a parent says why it will fail when a child has failed, before a worker takes it', async () => {
    const { flow, parts, rootQueue, work, part, root } = await start();
    await flow.add(root([part('a', { failParentOnFailure: true })]));
    expect((await rootQueue.getJob('root'))?.deferredFailure).toBeUndefined();
    work(parts, () => {
      throw new UnrecoverableError('broken');
    });
    const why = await until('the parent to hear of it', async () => (await rootQueue.getJob('root'))?.deferredFailure);
    expect(why).toMatch(/^child bull:.*-parts:a failed$/);
    expect(await rootQueue.getJobState('root')).toBe('waiting');
  });

  test('S7-4 a job that fails for good leaves one letter, and redrive sends it back', async () => {
    const { work, roots, parts, rootQueue, partQueue } = await start();
    let broken = true;
    work(roots, () => {
      if (broken) throw new Error('broken');
      return 'well';
    });
    await rootQueue.add('pay', { n: 1 }, { jobId: 'order', attempts: 2, removeOnFail: true, deadLetter: parts });
    await until('the letter', async () => (await partQueue.getWaitingCount()) === 1);
    const [letter] = await partQueue.getWaiting();
    expect([letter?.name, letter?.data]).toEqual(['pay', { n: 1 }]);
    expect(letter?.letterOf).toMatchObject({ key: expect.stringMatching(/^bull:.*-roots:/) as string, attemptsMade: 2 });
    expect([typeof letter?.letterOf?.failedReason, typeof letter?.letterOf?.failedOn]).toEqual(['string', 'number']);
    expect(await rootQueue.getJobState('order')).toBe('unknown');
    broken = false;
    expect(await partQueue.redrive()).toBe(1);
    expect(await partQueue.redrive()).toBe(0);
    await until('the job to complete', async () => (await rootQueue.getJobState('order')) === 'completed');
    await expect(rootQueue.add('pay', {}, { deadLetter: roots })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });

  test('redrive sends as many letters as its count, also those that were run, and passes over jobs that are no letters', async () => {
    const { work, roots, parts, rootQueue, partQueue } = await start();
    const failing = work(roots, () => {
      throw new UnrecoverableError('broken');
    });
    await partQueue.add('no letter', {});
    for (const jobId of ['a', 'b', 'c']) await rootQueue.add('pay', {}, { jobId, removeOnFail: true, deadLetter: parts });
    await until('the letters', async () => (await partQueue.getWaitingCount()) === 4);
    await failing.close();
    // The job that is no letter stays in front.
    const [, first] = await partQueue.getWaiting();
    await first?.moveToCompleted('read', (await first.takeLock()) as string, false);
    expect(await partQueue.redrive({ count: 2 })).toBe(2);
    expect(await partQueue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 1, completed: 1 });
    expect(await partQueue.redrive()).toBe(1);
    expect(await partQueue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 1, completed: 0 });
    expect(await rootQueue.getWaitingCount()).toBe(3);
  });
});
