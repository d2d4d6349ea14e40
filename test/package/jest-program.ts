// A user's Jest tests of the package, as the text of a test file for ts-jest. STORES names the connections to use, separated by
// spaces. The lock thread must reach each of them.

export const JEST_TEST = `
import { readFileSync } from 'node:fs';
import BullQueue, { Job as BullJob } from 'holdfast/bull';
import { Queue as BunQueue } from 'holdfast/bun-queue';
import { FaultyStore } from 'holdfast/testing';
import { HoldfastError, Job, Queue, QueueEvents, UnrecoverableError, Worker } from 'holdfast';

const stores = (process.env.STORES ?? '').split(' ');

test.each([...stores, 'memory:'])('jobs run on %s', async (connection) => {
  const errors: Error[] = [];
  const queue = new Queue('jest', { connection });
  const events = new QueueEvents('jest', { connection });
  const worker = new Worker('jest', async (job) => {
    if (job.name === 'hopeless') throw new UnrecoverableError('no hope');
    if (job.name === 'missing') readFileSync('/missing');
    return { is: job instanceof Job, held: job.lock?.held };
  }, { connection });
  worker.on('error', (error) => errors.push(error));
  await Promise.all([worker.waitUntilReady(), events.waitUntilReady()]);
  if (connection !== 'memory:') {
    while (worker.health().lockThread !== 'thread') await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const job = await queue.add('plain', { at: [1, { two: null }] });
  expect(await job.waitUntilFinished(events)).toEqual({ is: true, held: true });
  const hopeless = await queue.add('hopeless', {}, { attempts: 5 });
  await expect(hopeless.waitUntilFinished(events)).rejects.toThrow('no hope');
  expect((await queue.getJob(hopeless.id!))!.attemptsMade).toBe(1);
  // Its class is not this file's Error: Jest has one for each file.
  const missing = await queue.add('missing', {});
  await expect(missing.waitUntilFinished(events)).rejects.toThrow('ENOENT');
  expect((await queue.getJob(missing.id!))!.stacktrace[0]).toContain('jobs.test.ts');
  const refused = await queue.add('refused', {}, { attempts: 'many' as never }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(HoldfastError);
  await Promise.all([worker.close(), events.close()]);
  await queue.obliterate({ force: true });
  await queue.close();
  expect(errors).toEqual([]);
}, 20_000);

test('a store comes from a module that the user names', async () => {
  const queue = new Queue('own', { connection: { module: require.resolve('./own-store.cjs'), export: 'make' } });
  await queue.add('job', {});
  expect(await queue.getWaitingCount()).toBe(1);
  await queue.close();
});

test('the other entries load', () => {
  expect([typeof BullQueue, typeof BullJob, typeof BunQueue, typeof FaultyStore]).toEqual(Array(4).fill('function'));
  expect(require('holdfast/bull')).toBe(BullQueue);
});
`;

export const OWN_STORE = `exports.make = () => require('holdfast').openStore('memory:');
`;
