// The seam over the PostgreSQL client: the only file that knows the package pg, with everything that the engine needs from it. The types
// are our own, so that users of other stores need neither the package nor its types.
import { HoldfastError, isError } from '../../../errors.js';
import { requireOutside } from '../../../runtime/outside.js';

export interface PgQuery {
  text: string;
  values?: unknown[];
  /** If set, the server keeps the statement prepared under this name. */
  name?: string;
  rowMode: 'array';
}

export interface PgClient {
  connect(): Promise<unknown>;
  query(query: PgQuery): Promise<{ rows: unknown[][] }>;
  end(): Promise<void>;
  /** Loosely typed, so that the types of pg fit: an `error` event passes the error, a `notification` event passes `{ payload }`. */
  on(event: 'error' | 'end' | 'notification', listener: (...args: never[]) => void): unknown;
  unref?(): void;
  /** The number of the server's process, as the server reported it when the connection began. The types of pg lack it. */
  readonly processID?: number | null;
  /** The secret that a cancel request must carry, beside the process number. */
  readonly secretKey?: number | null;
  readonly host?: string;
  readonly port?: number;
  readonly connection: { readonly stream: { destroy(): void } };
}

export interface PgPoolClient extends PgClient {
  release(destroy?: boolean): void;
}

export interface PgPool {
  connect(): Promise<PgPoolClient>;
  end(): Promise<void>;
  on(event: 'connect' | 'remove', listener: (client: PgPoolClient) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  readonly options?: object;
  readonly idleCount?: number;
  readonly Client?: new (config: object) => PgClient;
}

export interface Driver {
  Pool: new (config: object) => PgPool;
  Client: new (config: object) => PgClient;
}

async function loadPackage(): Promise<Driver> {
  try {
    const { default: pg } = await import('pg');
    return pg as unknown as Driver;
  } catch (error) {
    return requireOutside('pg', error) as Driver;
  }
}

export async function loadDriver(): Promise<Driver> {
  try {
    return await loadPackage();
  } catch (cause) {
    // Node's message lists its require stack in the other lines, which would hide the advice.
    const detail = isError(cause) ? (cause.message.split('\n')[0] ?? '') : String(cause);
    throw new HoldfastError(
      'DRIVER_MISSING',
      `The PostgreSQL store needs the package pg, which cannot be loaded (${detail}). Run: npm install pg`,
      { cause, store: 'postgres' },
    );
  }
}
