// A handler that blocks the event loop for several lock durations, and a write elsewhere that is safe all the same.
//
// The lock thread renews the lock while the handler blocks. Should the lock be lost nevertheless (the process was frozen, the store was
// away for too long), `job.lock.held` turns false inside the loop, and what the handler would still write is refused: it hands its
// fence to the system that it writes to, and that system refuses a smaller fence than it has seen.
import { readFileSync, writeFileSync } from 'node:fs';
import { Queue, Worker } from 'holdfast';

// Stands for a table of yours: UPDATE reports SET body = :body, fence = :fence WHERE id = :id AND fence < :fence
function writeReport(fence: number, body: string): boolean {
  const seen = JSON.parse(readFileSync('report.json', 'utf8')) as { fence: number };
  if (fence <= seen.fence) return false;
  writeFileSync('report.json', JSON.stringify({ fence, body }));
  return true;
}
writeFileSync('report.json', JSON.stringify({ fence: 0, body: '' }));

const connection = 'sqlite:jobs.db';
const queue = new Queue('reports', { connection });
const worker = new Worker(
  'reports',
  (job) => {
    const { lock } = job;
    const end = performance.now() + 4000;
    while (performance.now() < end) {
      // A synchronous loop gets no events; `held` is read from memory that the lock thread writes.
      if (!lock.held) throw new Error('the lock is gone, somebody else may be writing this report');
    }
    return { written: writeReport(lock.fence, 'all is well'), fence: lock.fence };
  },
  { connection, lockDuration: 3000 },
);
const blocked = new Promise<number>((resolve) => worker.lockManagerThread?.once('loopBlocked', resolve));

await queue.add('daily', {});
const { written, fence } = await new Promise<{ written: boolean; fence: number }>((resolve, reject) => {
  worker.once('completed', (_job, result) => resolve(result));
  worker.once('failed', (_job, error) => reject(error));
});
console.log('the report was written:', written);
console.log('an older fence is refused:', !writeReport(fence - 1, 'a stale report'));
console.log('the thread saw the loop blocked for a second or more:', (await blocked) >= 1000);

await worker.close();
await queue.close();

// prints: the report was written: true
// prints: an older fence is refused: true
// prints: the thread saw the loop blocked for a second or more: true
