// Opens a store from a connection. This is the only file that knows the engines, and it loads an engine only when it is used.
// All queues, workers and listeners of a process that name the same store share one, so that their writes share commits. It is
// closed when the last of them releases it.
import { HoldfastError } from '../errors.js';
import { importModule } from '../runtime/import-module.js';
import { type Connection, type ConnectionPlan, isStore, planConnection, type StoreModule } from './connection.js';
import type { Store } from './contract/index.js';
import { watchDefaultFile } from './default-file.js';
import { plainCopy, type StoreDescriptor, withBuffers } from './descriptor.js';
import { applyFileMode } from './file-mode.js';
import type { Migrated } from './postgres/index.js';

export type { Connection } from './connection.js';
export type { Migrated } from './postgres/index.js';

export interface StoreLease {
  /** Returns the open store. After a failure, the next call tries again. */
  ready(): Promise<Store>;
  /** Returns the data that the lock thread needs to reach the same store; undefined if the thread cannot. Throws NOT_CLONEABLE. */
  describe(): Promise<StoreDescriptor | undefined>;
  /** Idempotent. */
  release(): Promise<void>;
}

interface Shared {
  leases: number;
  store?: Promise<Store>;
}

const shared = new Map<unknown, Shared>();

/** What this process has been warned of. Each line names a server and a setting. */
const warned = new Set<string>();

/** Every queue and worker of a store gets the same warning, and a process has many of them. */
function warnOnce({ message }: Error): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_STORE_UNSAFE' });
}

/** `onWarning` gets outages that no call has reported. Settings of a server that endanger acknowledged writes become a warning of the process. */
export function leaseStore(connection: Connection | undefined, onWarning: (warning: Error) => void): StoreLease {
  const plan = planConnection(connection);
  const entry = acquire(plan);
  let released: Promise<void> | undefined;
  let unlisten: (() => void) | undefined;
  const ready = async (): Promise<Store> => {
    if (released !== undefined)
      throw new HoldfastError('STORE_CLOSED', 'The store was closed; make a new queue or worker to use it again.');
    const opening = (entry.store ??= open(plan));
    try {
      const store = await opening;
      unlisten ??= store.onWarning((warning) =>
        (warning as Partial<HoldfastError>).code === 'STORE_UNSAFE' ? warnOnce(warning) : onWarning(warning),
      );
      return store;
    } catch (error) {
      if (entry.store === opening) delete entry.store;
      throw error;
    }
  };
  return {
    ready,
    describe: async () => {
      if (plan.engine === 'module') return describeModule(plainCopy(plan.module, 'connection'));
      return (await ready()).describe();
    },
    release: () => {
      unlisten?.();
      return (released ??= release(plan, entry));
    },
  };
}

/** Opens a store that the caller owns. Pass it as `connection` to any number of queues and workers, and close it after them. */
export async function openStore(connection?: Connection): Promise<Store> {
  return open(planConnection(connection));
}

/**
 * Creates or migrates the schema of a PostgreSQL store. For programs that open their stores with `migrate: false`, because their user
 * lacks the right. Any number of processes may call it at once. `options` are those of the connection, such as `schema`.
 */
export async function migratePostgres(connection?: Connection, options: Record<string, unknown> = {}): Promise<Migrated> {
  const plan = planConnection(connection);
  if (plan.engine !== 'postgres') {
    throw new HoldfastError(
      'INVALID_CONNECTION',
      'migratePostgres needs a connection to PostgreSQL: postgres://…, { url, … } or a pool of pg.',
      { option: 'connection' },
    );
  }
  const postgres = await import('./postgres/index.js');
  return postgres.migratePostgres({ ...plan.options, ...options });
}

/** Opens another store for the lock thread. */
export async function openDescribed(descriptor: StoreDescriptor): Promise<Store> {
  const { engine } = descriptor;
  const options = withBuffers(descriptor.options);
  const store =
    engine === 'module'
      ? await loadModule({ ...descriptor, options })
      : await ENGINES[engine](options as Record<string, unknown>);
  await store.open();
  return store;
}

function acquire(plan: ConnectionPlan): Shared {
  const key = 'key' in plan ? plan.key : undefined;
  const entry = (key === undefined ? undefined : shared.get(key)) ?? { leases: 0 };
  entry.leases += 1;
  if (key !== undefined) shared.set(key, entry);
  return entry;
}

async function release(plan: ConnectionPlan, entry: Shared): Promise<void> {
  entry.leases -= 1;
  if (entry.leases > 0) return;
  if ('key' in plan) shared.delete(plan.key);
  // A store that was passed in belongs to the caller that made it.
  if (plan.engine === 'given' || entry.store === undefined) return;
  const store = await entry.store.catch(() => undefined);
  await store?.close();
}

async function open(plan: ConnectionPlan): Promise<Store> {
  const report = 'defaultFile' in plan ? watchDefaultFile(plan.defaultFile) : undefined;
  const store = await create(plan);
  await store.open();
  report?.();
  return store;
}

async function create(plan: ConnectionPlan): Promise<Store> {
  switch (plan.engine) {
    case 'given':
      return plan.store;
    case 'module':
      return loadModule(describeModule(plan.module));
    case 'sqlite':
    case 'redis':
    case 'postgres':
      return ENGINES[plan.engine](plan.options);
    case 'memory': {
      const { MemoryStore } = await import('./memory/index.js');
      return new MemoryStore();
    }
    case 'sync': {
      const { SyncStore } = await import('./memory/index.js');
      return new SyncStore();
    }
  }
}

type Load = (options: Record<string, unknown>) => Promise<Store>;

const ENGINES: Record<'sqlite' | 'redis' | 'postgres', Load> = {
  sqlite: async (options) => {
    const { SqliteStore } = await import('./sqlite/index.js');
    const { path, fileMode } = options as { path: string; fileMode?: number };
    if (fileMode !== undefined) applyFileMode(path, fileMode);
    return new SqliteStore(options as { path: string });
  },
  redis: async (options) => {
    const { RedisStore } = await import('./redis/index.js');
    return new RedisStore(options);
  },
  postgres: async (options) => {
    const { PostgresStore } = await import('./postgres/index.js');
    return new PostgresStore(options);
  },
};

function describeModule({ module, export: name = 'default', options }: StoreModule): StoreDescriptor & { engine: 'module' } {
  return { engine: 'module', module, export: name, ...(options === undefined ? {} : { options }) };
}

async function loadModule({ module, export: name, options }: StoreDescriptor & { engine: 'module' }): Promise<Store> {
  const factory = (await importModule(module))[name];
  const store: unknown = typeof factory === 'function' ? await (factory as (options: unknown) => unknown)(options) : factory;
  if (typeof store !== 'object' || store === null || !isStore(store)) {
    throw new HoldfastError(
      'INVALID_CONNECTION',
      `The export ${name} of ${module} is not a store nor a function that returns one.`,
    );
  }
  return store;
}
