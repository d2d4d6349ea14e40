// BullMQ's document on the dedicated lock thread: configuration options.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Queue, Worker } from 'holdfast';

const redisConnection = process.env['HOLDFAST_URL'] ?? 'sqlite:jobs.db';
const processor = async (): Promise<string> => 'processed';

// ── the document ──
const worker = new Worker('myqueue', processor, {
  connection: redisConnection,
  useDedicatedLockThread: true,

  // Lock configuration (affects dedicated thread)
  lockDuration: 30000, // Lock duration in ms (default: 30000)
  lockRenewTime: 15000, // Lock renewal interval in ms (default: lockDuration / 2)
  skipLockRenewal: false, // Skip lock renewal entirely (default: false)

  // Stalled job configuration (affects dedicated thread)
  stalledInterval: 30000, // Stalled check interval in ms (default: 30000)
  maxStalledCount: 1, // Max times a job can be stalled (default: 1)
  skipStalledCheck: false, // Skip stalled job detection (default: false)
});
// ── around it ──

// All of these are the defaults, as the comments say.
const plain = new Worker('myqueue', null, { connection: redisConnection });
for (const option of [
  'lockDuration',
  'lockRenewTime',
  'skipLockRenewal',
  'stalledInterval',
  'maxStalledCount',
  'skipStalledCheck',
] as const)
  assert.equal(worker.opts[option], plain.opts[option], option);

const queue = new Queue('myqueue', { connection: redisConnection });
const completed = once(worker, 'completed');
await queue.add('job', {});
const [, result] = await completed;
console.log(result, 'with the defaults');
await Promise.all([worker.close(), plain.close()]);
await queue.close();

// prints: processed with the defaults
