// RedisConnection: BullMQ's class for a connection to Redis. It has a share of the store that queues of the same connection use, so its
// client is theirs.
import { StoreAccess } from '../handle/access.js';
import { ClosingEmitter } from '../runtime/emitter.js';
import { leaseStore, type Connection } from '../store/open.js';
import { type RedisClient, redisClientOf } from './redis-client.js';

export class RedisConnection extends ClosingEmitter<{ error: [error: Error] }> {
  readonly #access: StoreAccess;

  /** The second argument has no effect: BullMQ's choices for its own connections. */
  constructor(connection?: Connection, _options?: object) {
    super();
    const onError = (error: Error): void => void this.emit('error', error);
    this.#access = new StoreAccess('RedisConnection', leaseStore(connection, onError), onError);
  }

  /** Connects, and resolves with the client. Read it anew for each use: after an outage it is another one. Do not close it yourself. */
  get client(): Promise<RedisClient> {
    return this.#access.ready().then((store) => redisClientOf(store, 'RedisConnection.client'));
  }

  /** Set after `close` was called. */
  get closing(): Promise<void> | undefined {
    return this.#access.closing;
  }

  close(_force = false): Promise<void> {
    return this.#access.close(() => Promise.resolve());
  }

  disconnect(): Promise<void> {
    return this.close();
  }
}
