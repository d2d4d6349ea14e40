// bun-queue's document on distributed locks: payments. A process is killed in the middle of a payment, and it is not made again.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Queue } from 'holdfast/bun-queue';

async function processPayment(paymentId: string, amount: number, userId: string): Promise<void> {
  console.log(`${userId} pays ${amount} (${paymentId})`);
  if (paymentId !== 'p1') return;
  process.send?.('paying');
  await new Promise(() => undefined);
}

// ── the document ──
const paymentQueue = new Queue('payments', {
  distributedLock: true,
  maxStalledJobRetries: 0, // Don't auto-retry payments
});
// ── around it ──

if (process.argv[2] === 'victim') work();
else {
  const victim = fork(fileURLToPath(import.meta.url), ['victim']);
  const paying = new Promise((resolve) => victim.once('message', resolve));
  const interrupted = await paymentQueue.add({ paymentId: 'p1', amount: 10, userId: 'ada' });
  await paying;
  victim.kill('SIGKILL');
  const failed = new Promise<Error>((resolve) => paymentQueue.once('jobFailed', (_id, error) => resolve(error)));
  work();
  console.log('interrupted:', (await failed).message);
  const completed = new Promise<unknown>((resolve) => paymentQueue.once('jobCompleted', (_id, result) => resolve(result)));
  await paymentQueue.add({ paymentId: 'p2', amount: 20, userId: 'grace' });
  console.log(await completed);
  console.log('runs of the interrupted one:', (await paymentQueue.getJob(interrupted.id))?.attemptsStarted);
  await paymentQueue.close();
}

function work(): void {
  // ── the document ──
  paymentQueue.process(1, async (job) => {
    const { paymentId, amount, userId } = job.data;

    // Safe to process - distributed lock ensures exclusivity
    await processPayment(paymentId, amount, userId);

    return { processed: true, paymentId };
  });
  // ── around it ──
}

// prints: ada pays 10 (p1)
// prints: interrupted: job stalled more than allowable limit
// prints: grace pays 20 (p2)
// prints: { processed: true, paymentId: 'p2' }
// prints: runs of the interrupted one: 1
