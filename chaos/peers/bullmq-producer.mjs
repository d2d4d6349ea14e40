// The same producer: BullMQ's queue takes the same jobs, but for a `lockKey`, which it has not.
import { requirePeer } from '../../bench/peers.mjs';
import { endWith, noteError, plan } from '../actors/actor.mjs';
import { startProducing } from '../actors/producing.mjs';

const { Queue } = requirePeer('bullmq');
const queues = plan.queues.map((name) => new Queue(name, { connection: { url: plan.connection } }).on('error', noteError));
const stop = startProducing(queues);
endWith(async () => {
  await stop();
  await Promise.all(queues.map((queue) => queue.close()));
});
