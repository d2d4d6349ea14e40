// BullMQ's Redis, looked at from beside as the conductor looks at a store of ours: what was finished, what is left, what is there.
import { Cluster, Redis } from 'ioredis';
import { requirePeer } from '../../bench/peers.mjs';
import { bullmqOptions, endConnection, prefixOf } from './bullmq-connection.mjs';

const COUNTED = ['wait', 'paused', 'prioritized', 'delayed', 'active', 'waiting-children'];

/** `at`: a URL, or { cluster, natMap }. */
export function openBullmqStore(at) {
  const { Queue } = requirePeer('bullmq');
  const options = bullmqOptions(at);
  const redis = typeof at === 'string' ? new Redis(at, { maxRetriesPerRequest: null }) : new Cluster(at.cluster);
  redis.on('error', () => undefined);
  const queues = new Map();
  const queueOf = (name) => {
    if (!queues.has(name))
      queues.set(
        name,
        new Queue(name, options).on('error', () => undefined),
      );
    return queues.get(name);
  };
  return {
    capabilities: { families: true },
    events: async (queue, after, limit) => {
      const entries = await redis.xrange(`${prefixOf(at)}:${queue}:events`, `(${after}`, '+', 'COUNT', limit);
      return { events: entries.map(eventOf), last: entries.at(-1)?.[0] ?? after };
    },
    status: async (queue) => {
      const { wait, paused, ...counts } = await queueOf(queue).getJobCounts(...COUNTED);
      return { counts: { ...counts, waiting: wait + paused } };
    },
    jobs: async (queue, { lists }) => {
      const jobs = await queueOf(queue).getJobs(
        lists.map((list) => (list === 'waiting' ? 'wait' : list)),
        0,
        -1,
        true,
      );
      return { jobs: jobs.filter(Boolean).map(({ id, data }) => ({ id, data: JSON.stringify(data) })), more: false };
    },
    close: async () => {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      endConnection(options);
      redis.disconnect();
    },
  };
}

function eventOf([id, fields]) {
  const found = {};
  for (let index = 0; index < fields.length; index += 2) found[fields[index]] = fields[index + 1];
  return { ...found, id, name: found.event };
}
