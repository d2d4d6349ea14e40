// The adapter for ioredis: the only file that imports the package. Its types list everything that the engine uses of it.
import { HoldfastError, isError } from '../../../errors.js';
import { requireOutside } from '../../../runtime/outside.js';

export type Argument = string | number;
export type Options = Record<string, unknown>;

export interface Client {
  readonly status: string;
  readonly isCluster: boolean;
  /** The options as ioredis parsed them, with its defaults. */
  readonly options: Options;
  /** The socket of a single connection; a cluster client has none. */
  readonly stream?: { destroy(): void; unref(): unknown; readonly remoteAddress?: string; readonly bytesRead?: number } | null;
  connect(): Promise<unknown>;
  disconnect(): void;
  /** Runs a script. ioredis flattens the list of arguments. */
  eval(text: string, keys: number, key: string, args: Argument[]): Promise<unknown>;
  evalsha(sha: string, keys: number, key: string, args: Argument[]): Promise<unknown>;
  call(command: string, args: Argument[]): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  once(event: string, listener: (...args: unknown[]) => void): unknown;
  /** Makes a client with the same options, overridden by these. For a cluster: the startup nodes, then the options. */
  duplicate(options: Options | unknown[], ofCluster?: Options): Client;
}

export interface ClusterClient extends Client {
  nodes(role: 'master' | 'all'): Client[];
}

/** A connection to one node of a cluster. */
export interface NodeClient extends Client {
  /** ioredis calls it for each replica, when it connects or learns that a node has become one. */
  readonly(): Promise<unknown>;
}

export interface Driver {
  connection(url: string | undefined, options: Options): Client;
  cluster(nodes: unknown[], options: Options): Client;
}

let loading: Promise<Driver> | undefined;

export function loadDriver(): Promise<Driver> {
  loading ??= load();
  return loading;
}

type Package = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>;

async function loadPackage(): Promise<Package> {
  try {
    return await import('ioredis');
  } catch (error) {
    return requireOutside('ioredis', error) as Package;
  }
}

async function load(): Promise<Driver> {
  try {
    const { Redis, Cluster } = await loadPackage();
    return {
      connection: (url, options) => (url === undefined ? new Redis(options) : new Redis(url, options)) as unknown as Client,
      cluster: (nodes, options) => new Cluster(nodes as { host: string; port: number }[], options) as unknown as Client,
    };
  } catch (cause) {
    // Try again at the next call: a user who installs the package need not restart the process.
    loading = undefined;
    const detail = isError(cause) ? (cause.message.split('\n')[0] ?? '') : String(cause);
    throw new HoldfastError(
      'DRIVER_MISSING',
      `The Redis store needs the package ioredis, which cannot be loaded (${detail}). Run: npm install ioredis`,
      { cause, store: 'redis' },
    );
  }
}
