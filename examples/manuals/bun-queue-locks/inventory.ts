// bun-queue's document on distributed locks: inventory. The lock of a job keeps two workers off one job; what keeps two jobs off one product
// is a key that they share, so the jobs are added with one. Without it the last number is wrong.
import { Queue } from 'holdfast/bun-queue';

const inventory = new Map([
  ['apple', 100],
  ['pear', 100],
]);
// Reads, waits and writes, as a program does that talks to a database without a transaction.
async function change(productId: string, by: number): Promise<void> {
  const before = inventory.get(productId) ?? 0;
  await new Promise((resolve) => setTimeout(resolve, 2));
  inventory.set(productId, before + by);
}
const decrementInventory = (productId: string, quantity: number): Promise<void> => change(productId, -quantity);
const incrementInventory = (productId: string, quantity: number): Promise<void> => change(productId, quantity);

// ── the document ──
const inventoryQueue = new Queue('inventory', {
  distributedLock: true,
});

inventoryQueue.process(5, async (job) => {
  const { productId, quantity, operation } = job.data;

  // Lock ensures atomic inventory updates
  if (operation === 'decrement') {
    await decrementInventory(productId, quantity);
  } else {
    await incrementInventory(productId, quantity);
  }

  return { updated: true };
});
// ── around it ──

/** All at once, so that five of them can run at the same time. */
async function changeBoth(optionsFor: (productId: string) => { lockKey?: string }): Promise<string> {
  inventory.set('apple', 100).set('pear', 100);
  const done = new Promise<void>((resolve) => {
    let left = 60;
    inventoryQueue.on('jobCompleted', () => void ((left -= 1) === 0 && resolve()));
  });
  await inventoryQueue.pause();
  for (let n = 0; n < 60; n++) {
    const productId = n % 2 === 0 ? 'apple' : 'pear';
    const operation = n % 6 === 0 ? 'increment' : 'decrement';
    await inventoryQueue.add({ productId, quantity: 1, operation }, optionsFor(productId));
  }
  await inventoryQueue.resume();
  await done;
  inventoryQueue.removeAllListeners('jobCompleted');
  return `apple ${inventory.get('apple')} pear ${inventory.get('pear')}`;
}

console.log('with a key:', await changeBoth((productId) => ({ lockKey: `product-${productId}` })));
console.log('without a key:', (await changeBoth(() => ({}))) === 'apple 90 pear 70' ? 'as it should be' : 'wrong');
await inventoryQueue.close();

// prints: with a key: apple 90 pear 70
// prints: without a key: wrong
