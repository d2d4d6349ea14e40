// BullMQ's document on the dedicated lock thread: monitoring. A lock is renewed, one is taken away, and one lapses elsewhere.
import { once } from 'node:events';
import { openStore, Queue, Worker } from 'holdfast';

const queue = new Queue('queue');
const dead = new Worker('queue', null, { lockDuration: 100, skipStalledCheck: true });
await queue.add('left-behind', {});
await dead.getNextJob();

const worker = new Worker('queue', async (job) => job.name === 'held' && held, {
  useDedicatedLockThread: true,
  lockDuration: 1000,
  lockRenewTime: 50,
  stalledInterval: 50,
});
let letGo = (): void => undefined;
const held = new Promise<void>((resolve) => {
  letGo = resolve;
});
worker.on('error', () => undefined);

// ── the document ──
// Access internal lock manager thread for monitoring
const lockManager = worker['lockManagerThread'];

if (lockManager) {
  lockManager.on('lockExtended', (jobIds) => {
    console.log(`Successfully renewed locks for jobs: ${jobIds.join(', ')}`);
  });

  lockManager.on('lockRenewalFailed', (jobIds) => {
    console.log(`Failed to renew locks for jobs: ${jobIds.join(', ')}`);
  });

  lockManager.on('stalledJobs', (stalledJobIds) => {
    console.log(`Detected stalled jobs: ${stalledJobIds.join(', ')}`);
  });
}
// ── around it ──

if (lockManager === undefined) throw new Error('There is no lock thread to watch.');
await once(lockManager, 'stalledJobs');
// The other job runs again as well, and may be renewed before.
const renewed = new Promise<void>((resolve) =>
  lockManager.on('lockExtended', (jobIds) => void (jobIds.includes('2') && resolve())),
);
await queue.add('held', {});
await renewed;
const failed = once(lockManager, 'lockRenewalFailed');
const store = await openStore();
// Nobody may take it again before this program ends.
await queue.pause();
await store.change('queue', ['2'], { kind: 'revoke', reason: 'taken away' });
await failed;
letGo();
await worker.close();
await dead.close();
await store.close();
await queue.close();

// prints: Detected stalled jobs: 1
// prints: Successfully renewed locks for jobs: 2
// prints: Failed to renew locks for jobs: 2
