// What a handle does with the children of its job, at the edges: full pages, one child of several, failed children, several parents.
import { expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { FlowProducer } from '../../src/queue/flow-producer.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { Worker } from '../../src/worker/worker.js';
import { until } from '../support/wait/until.js';

type Handler = (job: Job, token: string) => Promise<unknown>;

async function start(ids: string[]) {
  const connection = new MemoryStore();
  const [flow, queue] = [new FlowProducer({ connection }), new Queue('parts', { connection })];
  const roots = new Queue('roots', { connection });
  onTestFinished(async () => void (await Promise.all([flow.close(), queue.close(), roots.close()])));
  const work = (name: string, handler: Handler): Worker => {
    const worker = new Worker(name, handler as (job: Job) => Promise<unknown>, { connection });
    onTestFinished(() => worker.close());
    return worker;
  };
  const children = ids.map((id) => ({ name: 'part', queueName: 'parts', opts: { jobId: id } }));
  const { job } = await flow.add({ name: 'root', queueName: 'roots', opts: { jobId: 'root' }, children });
  return { job, flow, queue, roots, work };
}

test('a full last page of dependencies ends with the cursor 0', async () => {
  const { job } = await start(['a', 'b', 'c', 'd']);
  const first = await job.getDependencies({ unprocessed: { cursor: 0, count: 2 } });
  expect([first.unprocessed, first.nextUnprocessedCursor]).toEqual([['bull:parts:a', 'bull:parts:b'], 2]);
  const last = await job.getDependencies({ unprocessed: { cursor: 2, count: 2 } });
  expect([last.unprocessed, last.nextUnprocessedCursor]).toEqual([['bull:parts:c', 'bull:parts:d'], 0]);
});

test('unprocessed children that have failed stay when the others are removed', async () => {
  const { job, queue, work } = await start(['bad', 'good']);
  const worker = work('parts', async (part) => {
    if (part.id === 'bad') await queue.pause();
    throw new Error('broken');
  });
  await until('the failure', async () => (await queue.getJobState('bad')) === 'failed');
  await worker.close();
  await job.removeUnprocessedChildren();
  expect([await queue.getJobState('bad'), await queue.getJobState('good')]).toEqual(['failed', 'unknown']);
});

test('a run that waits for one child goes on when that child has ended', async () => {
  const { flow, queue, roots, work } = await start([]);
  const waited: boolean[] = [];
  work('roots', async (job, token) => {
    const parent = { id: 'root', queue: 'bull:roots' };
    for (const id of ['done', 'open']) await queue.add('part', {}, { jobId: id, parent, delay: id === 'open' ? 60_000 : 0 });
    await until('the end of a child', async () => (await queue.getJobState('done')) === 'completed');
    waited.push(await job.moveToWaitingChildren(token, { child: { id: 'done', queue: 'bull:parts' } }));
    throw new Error('over');
  });
  work('parts', async () => 'value');
  await until('the end of the run', async () => (await roots.getJobState('root')) === 'failed');
  expect(waited).toEqual([false]);
  await flow.close();
});

test('a job that is parted from one of two parents shows the other one', async () => {
  const { flow, queue } = await start([]);
  const node = (id: string, queueName: string) => ({ name: id, queueName, opts: { jobId: id } });
  await flow.addGraph({
    nodes: { shared: node('shared', 'parts'), left: node('left', 'roots'), right: node('right', 'roots') },
    edges: [
      ['shared', 'left'],
      ['shared', 'right'],
    ],
  });
  const job = await queue.getJob('shared');
  expect(job?.parentKey).toBe('bull:roots:left');
  expect(await job?.removeChildDependency()).toBe(true);
  expect(job?.parentKey).toBe('bull:roots:right');
  expect(await job?.removeChildDependency()).toBe(true);
  expect([job?.parent, job?.parentKey]).toEqual([undefined, undefined]);
});
