// The same producer: BullMQ's queue takes the same jobs, but for a `lockKey`, which it has not, and the same flows.
import { requirePeer } from '../../bench/peers.mjs';
import { endWith, noteError, plan } from '../actors/actor.mjs';
import { startFlowing } from '../actors/flowing.mjs';
import { startProducing } from '../actors/producing.mjs';
import { bullmqOptions, endConnection } from './bullmq-connection.mjs';

const { FlowProducer, Queue } = requirePeer('bullmq');
const options = bullmqOptions(plan.connection);
const queues = plan.queues.map((name) => new Queue(name, options).on('error', noteError));
const stops = [
  startProducing(queues),
  ...(plan.hasFlows ? [startFlowing(new FlowProducer(options).on('error', noteError))] : []),
];
endWith(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await Promise.all(queues.map((queue) => queue.close()));
  endConnection(options);
});
