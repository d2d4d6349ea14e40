// BullMQ's Redis, looked at from beside as the conductor looks at a store of ours: what was finished, what is left, what is there.
import { Redis } from 'ioredis';
import { requirePeer } from '../../bench/peers.mjs';

export function openBullmqStore(url) {
  const { Queue } = requirePeer('bullmq');
  const redis = new Redis(url, { maxRetriesPerRequest: null }).on('error', () => undefined);
  const queues = new Map();
  const queueOf = (name) => {
    if (!queues.has(name))
      queues.set(
        name,
        new Queue(name, { connection: { url } }).on('error', () => undefined),
      );
    return queues.get(name);
  };
  return {
    events: async (queue, after, limit) => {
      const entries = await redis.xrange(`bull:${queue}:events`, `(${after}`, '+', 'COUNT', limit);
      return { events: entries.map(eventOf), last: entries.at(-1)?.[0] ?? after };
    },
    status: async (queue) => {
      const { wait, paused, ...counts } = await queueOf(queue).getJobCounts('wait', 'paused', 'prioritized', 'delayed', 'active');
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
      redis.disconnect();
    },
  };
}

function eventOf([id, fields]) {
  const found = {};
  for (let index = 0; index < fields.length; index += 2) found[fields[index]] = fields[index + 1];
  return { ...found, id, name: found.event };
}
