// Calls the server: each call is one function of the schema, on one connection of a pool. A server that does not reply costs a call no
// more than its timeout. The store then drops the connection and cancels its statement. Repeating the call shows whether it was carried
// out.
import { setTimeout as sleep } from 'node:timers/promises';
import { asLate, HoldfastError, isRetryable } from '../../../errors.js';
import { ReplyTimeout } from '../../../runtime/reply-timeout.js';
import { within } from '../../../runtime/within.js';
import { cancelStatement } from './cancel.js';
import type { PgPool, PgPoolClient, PgQuery } from './driver.js';
import { type Circumstance, codeOf, isCollision, isReplaced, spoilsConnection, toStoreError } from './errors.js';
import { quoteName } from './options.js';
import { PoolLine } from './pool-line.js';
import { callOf, type Statement, statementOf, tuning } from './sql.js';

export interface ServerOptions {
  pool: PgPool;
  /** False: the pool is the user's, and stays open. */
  owned: boolean;
  place: string;
  schema: string;
  connectTimeoutMs: number;
  queryTimeoutMs: number;
  /** How many connections the pool has. */
  max: number;
}

/** The arguments of an operation, by their names. */
export type Values = Record<string, unknown>;

interface Query {
  text: string;
  values: unknown[];
}

/** How long closing waits for connections to end, in ms. */
const END_MS = 1000;
/** How long a drop waits, in ms: until the pool knows that a connection was cut, and the server that a statement was cancelled. */
const DROP_MS = 100;
const COLLISIONS = 5;
/** SQLSTATEs: the server knows no statement of this name, or another one, because a pooler was put between. Nothing was carried out. */
const UNPREPARED = new Set(['26000', '42P05']);
/** A pool reports a better reason why no connection came, so the pool gets this many ms more. */
const POOLS_OWN_MS = 200;

/**
 * Timeout for renewals, and for the sweeps and probes that share a lock thread's two connections with them. A connection that died
 * silently must not keep a lock from being renewed in time.
 */
export const KEEPING_MS = 4000;

/** Calls functions of the schema. */
export type Calls = Pick<Server, 'call'>;

/** Selected beside the reply of a function: whether its transaction has written messages (has_sent). */
const SENT = "current_setting('holdfast.sent', true) = '1'";

export class Server {
  /** True: statements are prepared by name, about 5 % less work for a call of one job, on both sides. */
  prepare = false;
  /** True: connections may be set up for fast paths, because they are the store's own and lead straight to the server. */
  tune = false;
  readonly #tuned = new WeakSet<PgPoolClient>();
  /** The reply timeouts of each connection. */
  readonly #patience = new WeakMap<PgPoolClient, ReplyTimeout>();
  readonly #options: ServerOptions;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #clients = new Set<PgPoolClient>();
  /** Connections in use, and since when (ms of performance.now). */
  readonly #busy = new Map<PgPoolClient, number>();
  readonly #guarded = new WeakSet<PgPoolClient>();
  readonly #statements = new Map<string, Statement>();
  readonly #line: PoolLine;
  #reached = false;
  #hasReported = false;
  /** When the last call of the store itself failed without a reply. */
  #gaveUpAt: number | undefined;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { pool } = options;
    this.#line = new PoolLine(options.max);
    // An idle connection that breaks is replaced when it is needed; that call then reports the reason.
    pool.on('error', () => undefined);
    // Guard the client before a caller gets it: a server may accept a connection and end it in the same turn.
    pool.on('connect', (client) => {
      this.#guard(client);
      if (options.owned) this.#clients.add(client);
    });
    if (options.owned) pool.on('remove', (client) => this.#clients.delete(client));
  }

  get circumstance(): Circumstance {
    return { place: this.#options.place, schema: this.#options.schema, reached: this.#reached };
  }

  /** True if a call has failed, and reported that to its caller, since the last reply. */
  get hasReported(): boolean {
    return this.#hasReported;
  }

  /** Calls a function of the schema, and returns the JSON that it replies. */
  async call<T>(name: string, values: Values, patienceMs?: number): Promise<T> {
    return this.#noteFailure(this.#call<T>(name, values, patienceMs));
  }

  /** Calls a function that may write messages. `onSent` is called before the reply if it did. */
  async callAndSend<T>(name: string, values: Values, onSent: () => void, patienceMs?: number): Promise<T> {
    const { text, values: list } = this.statement(name, values);
    const rows = await this.#noteFailure(this.#run(`${name}_sent`, { text: `${text}, ${SENT}`, values: list }, patienceMs));
    const [reply, sent] = rows?.[0] ?? [];
    if (sent === true) onSent();
    return (typeof reply === 'string' ? JSON.parse(reply) : null) as T;
  }

  /**
   * Runs an operation that takes its settings and its search path from the connection. Returns the rows, or undefined if connections are
   * not set up for that; then nothing was done.
   */
  async short(name: string, values: Values, patienceMs?: number): Promise<unknown[][] | undefined> {
    return this.tune ? this.#noteFailure(this.#run(name, this.statement(name, values), patienceMs, true)) : undefined;
  }

  /** A call of the store itself, with a short timeout. Its failure is reported to no user. */
  async ask<T>(name: string, values: Values, patienceMs: number): Promise<T> {
    return this.#listen(this.#call<T>(name, values, patienceMs));
  }

  /** The fast path of `ask`, as `short` is that of `call`. */
  async askShort(name: string, values: Values, patienceMs: number): Promise<unknown[][] | undefined> {
    return this.tune ? this.#listen(this.#run(name, this.statement(name, values), patienceMs, true)) : undefined;
  }

  /** Calls a function of the schema that returns rows. */
  async rows(name: string, values: Values): Promise<unknown[][]> {
    const query = this.statement(name, values);
    return (await this.#noteFailure(this.#run(name, { ...query, text: query.text.replace('SELECT', 'SELECT * FROM') }))) ?? [];
  }

  /**
   * Returns the text that runs an operation, and its values. The reply of a function is the column `reply`. All calls of a function must
   * name the same parameters.
   */
  statement(name: string, values: Values): Query {
    let known = this.#statements.get(name);
    if (known === undefined) {
      known = statementOf(name) ?? callOf(`${quoteName(this.#options.schema)}.${name}`, Object.keys(values));
      this.#statements.set(name, known);
    }
    return { text: known.text, values: known.parameters.map((parameter) => values[parameter] ?? null) };
  }

  /** Runs several statements on one connection, which is dropped if the work fails. */
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
      this.#release(client, spoiled);
    }
  }

  /** Waits for the calls under way, then ends the connections. Ends also if the server does not reply. */
  async close(patienceMs: number): Promise<void> {
    await within(patienceMs, this.#idle());
    if (!this.#options.owned) return;
    const ended = Promise.all([...this.#clients].map((client) => new Promise<void>((resolve) => client.on('end', resolve))));
    // Ends idle connections. Those that hang are cut below, and their calls fail.
    void this.#options.pool.end().catch(() => undefined);
    await within(END_MS, ended);
    for (const client of this.#clients) this.#cut(client);
  }

  /**
   * Waits until no call is under way. One call may lead to another: a sweep first reads what is dead. If the pool ended meanwhile, the second call
   * would wait for a connection, and keep its timer alive.
   */
  async #idle(): Promise<void> {
    do {
      await Promise.allSettled(this.#calls);
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.#calls.size > 0);
  }

  #track<T>(call: Promise<T>): Promise<T> {
    const ended = (): void => void this.#calls.delete(call);
    this.#calls.add(call);
    call.then(ended, ended);
    return call;
  }

  async #noteFailure<T>(call: Promise<T>): Promise<T> {
    try {
      const reply = await this.#track(call);
      this.#hasReported = false;
      return reply;
    } catch (error) {
      this.#hasReported ||= isRetryable(error);
      throw error;
    }
  }

  async #listen<T>(call: Promise<T>): Promise<T> {
    try {
      const reply = await this.#track(call);
      this.#hasReported = false;
      this.#dropStranded();
      return reply;
    } catch (error) {
      this.#gaveUpAt = performance.now();
      throw error;
    }
  }

  async #call<T>(name: string, values: Values, patienceMs?: number): Promise<T> {
    const rows = await this.#run(name, this.statement(name, values), patienceMs, false);
    const reply = rows?.[0]?.[0];
    return (typeof reply === 'string' ? JSON.parse(reply) : null) as T;
  }

  /** `short`: run only on a connection that is set up for it. */
  async #run(
    name: string,
    { text, values }: Query,
    patienceMs = Number.POSITIVE_INFINITY,
    short = false,
  ): Promise<unknown[][] | undefined> {
    const timeoutMs = Math.min(patienceMs, this.#options.queryTimeoutMs);
    for (let collisions = 0; ; collisions += 1) {
      const client = await this.#acquire();
      try {
        const ready = !short || this.#tuned.has(client) || (await this.#setUp(client, timeoutMs));
        const query = this.prepare ? { text, values, name: `holdfast_${name}` } : { text, values };
        const rows = ready ? await this.#query(client, query, timeoutMs) : undefined;
        this.#release(client, false);
        return rows;
      } catch (error) {
        // A plan that the server made while a migration replaced a function can stay invalid for as long as its connection lives.
        this.#release(client, spoilsConnection(error) || isReplaced(error));
        if (this.prepare && UNPREPARED.has(codeOf(error) ?? '')) {
          this.prepare = false;
          continue;
        }
        if (!(isCollision(error) || isReplaced(error)) || collisions >= COLLISIONS) throw toStoreError(error, this.circumstance);
      }
      await sleep(Math.random() * 5 * 2 ** collisions);
    }
  }

  /** Returns whether it set the connection up. It does not if a connection that was opened later leads to a pooler. */
  async #setUp(client: PgPoolClient, timeoutMs: number): Promise<boolean> {
    const query = { text: tuning(), values: [client.processID, `${quoteName(this.#options.schema)}, pg_temp`] };
    this.tune = (await this.#query(client, query, timeoutMs))[0]?.[0] === true;
    if (this.tune) this.#tuned.add(client);
    return this.tune;
  }

  async #acquire(): Promise<PgPoolClient> {
    const { connectTimeoutMs } = this.#options;
    await this.#line.enter(connectTimeoutMs, () => this.#noneFree());
    try {
      return await this.#connect();
    } catch (error) {
      this.#line.leave();
      throw error;
    }
  }

  async #connect(): Promise<PgPoolClient> {
    const { pool, owned, connectTimeoutMs } = this.#options;
    // The store's own pool hands out an idle connection at once.
    const isThere = owned && (pool.idleCount ?? 0) > 0;
    const connecting = pool.connect();
    let client: PgPoolClient | undefined;
    try {
      // In a pool of the user, other callers may be served while this call waits.
      do client = await (isThere ? connecting : within(connectTimeoutMs + POOLS_OWN_MS, connecting));
      while (client === undefined && !owned && this.#line.isServed(connectTimeoutMs));
    } catch (error) {
      throw toStoreError(error, this.circumstance);
    }
    if (client === undefined) {
      // A pool of the user may wait for ever: a connection that it hands out too late goes back.
      connecting.then(
        (late) => late.release(),
        () => undefined,
      );
      throw this.#noneFree();
    }
    this.#reached = true;
    this.#busy.set(client, performance.now());
    this.#guard(client);
    return client;
  }

  #noneFree(): HoldfastError {
    const { place, connectTimeoutMs } = this.#options;
    return unanswered(
      `No connection to PostgreSQL at ${place} became free within ${connectTimeoutMs} ms. Check the server, or allow the pool more connections.`,
    );
  }

  #release(client: PgPoolClient, spoiled: boolean): void {
    this.#busy.delete(client);
    client.release(spoiled);
    this.#line.leave();
  }

  /**
   * Drops the idle connections. If one connection gives no reply, the idle ones are most likely dead too: each would cost a call its
   * whole timeout.
   */
  async #dropIdle(): Promise<void> {
    const idle = [...this.#clients].filter((client) => !this.#busy.has(client));
    const ended = idle.map((client) => new Promise<void>((resolve) => client.on('end', resolve)));
    for (const { connection } of idle) connection.stream.destroy();
    await within(DROP_MS, Promise.all(ended));
  }

  /**
   * Cuts connections that are most likely dead. The server replies again on another connection, so calls that were sent before the failed
   * one wait in vain. A server that is only slow does not come here, and a call that was cut in error is repeated under its number.
   */
  #dropStranded(): void {
    const gaveUpAt = this.#gaveUpAt;
    this.#gaveUpAt = undefined;
    if (gaveUpAt === undefined) return;
    for (const client of this.#clients) {
      const since = this.#busy.get(client);
      if (since !== undefined && since < gaveUpAt) this.#cut(client);
    }
  }

  /** Ends a connection at once, and cancels its statement on the server. */
  #cut(client: PgPoolClient): void {
    if (this.#busy.has(client)) void cancelStatement(client);
    client.connection.stream.destroy();
  }

  /**
   * Ignores error events. A connection that breaks in use emits one and also rejects its query; an unhandled event would end the process.
   */
  #guard(client: PgPoolClient): void {
    if (this.#guarded.has(client)) return;
    this.#guarded.add(client);
    client.on('error', () => undefined);
  }

  async #query(client: PgPoolClient, { text, values, name }: Omit<PgQuery, 'rowMode'>, timeoutMs: number): Promise<unknown[][]> {
    let patience = this.#patience.get(client);
    if (patience === undefined) this.#patience.set(client, (patience = new ReplyTimeout()));
    const query: PgQuery = { text, rowMode: 'array' };
    if (values !== undefined) query.values = values;
    if (name !== undefined) query.name = name;
    let isLate = false;
    try {
      const { rows } = await patience.wait(timeoutMs, client.query(query), () => {
        isLate = true;
        return asLate(
          unanswered(
            `PostgreSQL at ${this.#options.place} did not answer within ${timeoutMs} ms. The call may or may not have happened.`,
          ),
        );
      });
      this.#line.answered();
      return rows;
    } catch (error) {
      // An error from the server is a reply too.
      if (codeOf(error) !== undefined) this.#line.answered();
      throw error;
    } finally {
      // The repeated call must not meet the row locks of this one.
      if (isLate) await Promise.all([within(DROP_MS, cancelStatement(client)), this.#dropIdle()]);
    }
  }
}

function unanswered(message: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { retryable: true, store: 'postgres' });
}
