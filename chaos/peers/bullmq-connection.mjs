// How a process reaches the Redis of BullMQ: by a URL, or as a Cluster, all of whose queues need one hash tag then.
import { requirePeer } from '../../bench/peers.mjs';

/** `at`: a URL, or { cluster, natMap }. `options`: of the connection. */
export function bullmqOptions(at, options = {}) {
  if (typeof at === 'string') return { connection: { url: at, ...options } };
  const { Cluster } = requirePeer('ioredis');
  const { cluster, natMap } = at;
  const connection = new Cluster(cluster, { natMap, redisOptions: options }).on('error', () => undefined);
  return { connection, prefix: prefixOf(at) };
}

export function prefixOf(at) {
  return typeof at === 'string' ? 'bull' : '{bull}';
}

/** BullMQ leaves a connection open that it was given. */
export function endConnection({ connection }) {
  connection.disconnect?.();
}
