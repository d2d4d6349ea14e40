// The ioredis client of a Redis store, for programs that send commands of their own.
import { HoldfastError } from '../errors.js';
import type { Any } from '../job/typing.js';
import type { Store } from '../store/contract/index.js';

/** A `Redis` or `Cluster` of ioredis. Untyped, because ioredis is an optional package whose types differ between versions. */
export type RedisClient = Any;

/** `what`: the property that was read. */
export function redisClientOf({ capabilities: { engine }, client }: Store, what: string): RedisClient {
  if (client !== undefined) return client;
  if (engine === 'redis')
    throw new HoldfastError('STORE_UNAVAILABLE', `${what}: Redis cannot be reached at the moment. Read it again later.`, {
      retryable: true,
      store: engine,
    });
  throw new HoldfastError(
    'STORE_UNSUPPORTED',
    `${what} is a client of Redis, and this store is ${engine}. Use the methods of Queue, or open a client of your own.`,
    { store: engine },
  );
}
