// The way to the server: a call is one function of the schema on one connection of a pool. A server that does not answer costs a call
// no more than its time: the connection is given up then, and what it did is found out by repeating the call.
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastError } from '../../errors.js';
import type { PgPool, PgPoolClient, PgQuery } from './driver.js';
import { type Circumstance, isCollision, spoilsConnection, toStoreError } from './errors.js';
import { quoteName } from './options.js';

export interface ServerOptions {
  pool: PgPool;
  /** False: it is the user's, and stays open. */
  owned: boolean;
  place: string;
  schema: string;
  prepare: boolean;
  connectTimeoutMs: number;
  queryTimeoutMs: number;
}

/** How long closing waits for calls that are under way, and then for connections to end. */
export const CLOSE_MS = 5000;
const END_MS = 1000;
const COLLISIONS = 5;
/** A pool tells better why no connection came: it gets a moment more. */
const POOLS_OWN_MS = 200;

export class Server {
  readonly #options: ServerOptions;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #clients = new Set<PgPoolClient>();
  readonly #guarded = new WeakSet<PgPoolClient>();
  readonly #statements = new Map<string, string>();
  #reached = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { pool } = options;
    // An idle connection that breaks is replaced when it is needed; whoever needs it is told then.
    pool.on('error', () => undefined);
    if (!options.owned) return;
    pool.on('connect', (client) => this.#clients.add(client));
    pool.on('remove', (client) => this.#clients.delete(client));
  }

  get circumstance(): Circumstance {
    return { place: this.#options.place, schema: this.#options.schema, reached: this.#reached };
  }

  /** Calls a function of the schema, which answers JSON. */
  call<T>(name: string, values: unknown[]): Promise<T> {
    return this.#track(this.#call<T>(name, values));
  }

  /** Its answer is called `reply`. */
  statement(name: string, parameters: number): string {
    let text = this.#statements.get(name);
    if (text === undefined) {
      const list = Array.from({ length: parameters }, (_, index) => `$${index + 1}`).join(', ');
      text = `SELECT ${quoteName(this.#options.schema)}.${name}(${list}) AS reply`;
      this.#statements.set(name, text);
    }
    return text;
  }

  /** Runs work on one connection, which is given up if that fails. For what is more than a call. */
  async use<T>(
    work: (run: (text: string, values?: unknown[]) => Promise<unknown[][]>, client: PgPoolClient) => Promise<T>,
    timeoutMs: number,
  ): Promise<T> {
    const client = await this.#acquire();
    let spoiled = true;
    try {
      const run = (text: string, values?: unknown[]) =>
        this.#query(client, values === undefined ? { text } : { text, values }, timeoutMs);
      const result = await work(run, client);
      spoiled = false;
      return result;
    } catch (error) {
      throw toStoreError(error, this.circumstance);
    } finally {
      client.release(spoiled);
    }
  }

  /** Lets calls that are under way end, then lets go of the connections. Comes to an end also when the server does not answer. */
  async close(): Promise<void> {
    await within(CLOSE_MS, Promise.allSettled(this.#calls));
    if (!this.#options.owned) return;
    const ended = Promise.all([...this.#clients].map((client) => new Promise<void>((resolve) => client.on('end', resolve))));
    // Ends idle connections. Those that hang are cut below, which makes their calls fail.
    void this.#options.pool.end().catch(() => undefined);
    await within(END_MS, ended);
    for (const client of this.#clients) client.connection.stream.destroy();
  }

  #track<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call);
    void call.catch(() => undefined).finally(() => this.#calls.delete(call));
    return call;
  }

  async #call<T>(name: string, values: unknown[]): Promise<T> {
    const text = this.statement(name, values.length);
    for (let collisions = 0; ; collisions += 1) {
      const client = await this.#acquire();
      try {
        const rows = await this.#query(
          client,
          { text, values, ...(this.#options.prepare && { name: `holdfast_${name}` }) },
          this.#options.queryTimeoutMs,
        );
        client.release();
        const reply = rows[0]?.[0];
        return (typeof reply === 'string' ? JSON.parse(reply) : null) as T;
      } catch (error) {
        client.release(spoilsConnection(error));
        if (!isCollision(error) || collisions >= COLLISIONS) throw toStoreError(error, this.circumstance);
      }
      await sleep(Math.random() * 5 * 2 ** collisions);
    }
  }

  async #acquire(): Promise<PgPoolClient> {
    const { pool, connectTimeoutMs, place } = this.#options;
    const connecting = pool.connect();
    let client: PgPoolClient | undefined;
    try {
      client = await within(connectTimeoutMs + POOLS_OWN_MS, connecting);
    } catch (error) {
      throw toStoreError(error, this.circumstance);
    }
    if (client === undefined) {
      // A pool of the user's may wait for ever: what it hands out too late goes back.
      connecting.then(
        (late) => late.release(),
        () => undefined,
      );
      throw unanswered(
        `No connection to PostgreSQL at ${place} became free within ${connectTimeoutMs} ms. Check the server, or allow the pool more connections.`,
      );
    }
    this.#reached = true;
    this.#guard(client);
    return client;
  }

  /** A connection that breaks while it is in use says so by an event as well as by its query: unheard, that would end the process. */
  #guard(client: PgPoolClient): void {
    if (this.#guarded.has(client)) return;
    this.#guarded.add(client);
    client.on('error', () => undefined);
  }

  async #query(client: PgPoolClient, query: Omit<PgQuery, 'rowMode'>, timeoutMs: number): Promise<unknown[][]> {
    const answer = client.query({ ...query, rowMode: 'array' });
    const result = await within(timeoutMs, answer);
    if (result !== undefined) return result.rows;
    answer.catch(() => undefined);
    throw unanswered(
      `PostgreSQL at ${this.#options.place} did not answer within ${timeoutMs} ms. The call may or may not have happened.`,
    );
  }
}

function unanswered(message: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { retryable: true, store: 'postgres' });
}

/** Undefined when the time is up first. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
