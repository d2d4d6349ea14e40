// Work that only one process at a time may do, without a job: whoever came first comes first.
import { Queue } from 'holdfast';

const queue = new Queue('billing', { connection: 'sqlite:locks.db' });

async function bill(customer: string): Promise<void> {
  await queue.lock(`customer:${customer}`, { durationMs: 10_000, waitMs: 5_000 }, async (lock) => {
    console.log(`billing ${customer}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Long work looks now and then; what it writes elsewhere carries the fence.
    if (!lock.held) throw new Error('somebody else may be billing by now');
    console.log(`billed ${customer}, fence ${lock.fence > 0}`);
  });
}

await Promise.all([bill('ada'), bill('ada')]);
// prints: billing ada
// prints: billed ada, fence true
// prints: billing ada
// prints: billed ada, fence true

const lock = await queue.takeLock('printer');
console.log(await queue.takeLock('printer'));
// prints: undefined
await lock?.release();
await queue.close();
