// bun-queue's document on distributed locks: leader election. This program is two instances: the first is closed, and the second leads at
// once; no need to wait for its timeout.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Queue } from 'holdfast/bun-queue';

// ── the document ──
const queue = new Queue('scheduled-tasks', {
  horizontalScaling: {
    enabled: true,
    leaderElection: {
      heartbeatInterval: 5000,
      leaderTimeout: 15000,
    },
  },
});

// Only the leader instance will run scheduled tasks
queue.on('leader', () => {
  console.log('This instance is now the leader');
  // Start scheduled tasks
});

queue.on('follower', () => {
  console.log('This instance is now a follower');
  // Stop scheduled tasks
});
// ── around it ──

if (process.argv[2] === 'second') {
  queue.on('follower', () => process.send?.('follower'));
  // Waits its turn, and ends with it.
  queue.once('leader', () => setImmediate(() => void queue.close().then(() => process.disconnect())));
} else {
  await queue.waitUntilReady();
  const second = fork(fileURLToPath(import.meta.url), ['second']);
  const follows = new Promise((resolve) => second.once('message', resolve));
  const ended = new Promise((resolve) => second.once('exit', resolve));
  await follows;
  console.log('instances:', (await queue.getInstances()).length);
  await queue.close();
  console.log('handed over');
  await ended;
}

// prints: This instance is now the leader
// prints: This instance is now a follower
// prints: instances: 2
// prints: This instance is now a follower
// prints: This instance is now the leader
