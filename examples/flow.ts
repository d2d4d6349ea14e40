// A flow: an order waits until its parts are packed, in another queue, and then reads what became of them. A part that fails for good leaves a
// dead letter, and the order goes on without it.
import { FlowProducer, Queue, Worker } from 'holdfast';

const connection = 'sqlite:flow.db';
const flow = new FlowProducer({ connection });
const dead = new Queue('parts-dead', { connection });

const packer = new Worker(
  'parts',
  async (job) => {
    if (job.data.part === 'mirror') throw new Error('broken glass');
    return `${job.data.part} packed`;
  },
  { connection },
);

const shipping = new Worker(
  'orders',
  async (job) => {
    const packed = Object.values<string>(await job.getChildrenValues()).sort();
    const missing = Object.values(await job.getIgnoredChildrenFailures());
    return [...packed, ...missing].join(', ');
  },
  { connection },
);

shipping.on('completed', async (job, result) => {
  console.log(`${job.id}: ${result}`);
  // prints: order-7: chair packed, desk packed, broken glass
  console.log('letters:', await dead.getWaitingCount());
  // prints: letters: 1
  await Promise.all([shipping.close(), packer.close(), flow.close(), dead.close()]);
});

const opts = { ignoreDependencyOnFailure: true, deadLetter: 'parts-dead' };
await flow.add({
  name: 'ship',
  queueName: 'orders',
  opts: { jobId: 'order-7' },
  children: ['desk', 'chair', 'mirror'].map((part) => ({ name: 'pack', queueName: 'parts', data: { part }, opts })),
});
