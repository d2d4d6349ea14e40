// The one connection that a store keeps beside its pool. It receives notifications of other processes (LISTEN), and holds the advisory
// lock that proves that this process lives. It must be a direct connection: behind a pooler, both would belong to another client a moment
// later.
// If it breaks, the listener reconnects: at once at first, then with growing pauses. Meanwhile the store polls for changes.
import { retryPauseMs } from '../../../runtime/retry-pause.js';
import { within } from '../../../runtime/within.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PgClient } from './driver.js';
import { sqlOf } from './sql.js';

export interface ListenerOptions {
  connect(): PgClient;
  channel: string;
  onMessage(payload: string): void;
  /** Called after each connect: a notification may have been missed. */
  onConnected(): void;
  onLost(): void;
  /** Runs on the connection before it counts as connected. */
  onConnecting(run: Run): Promise<void>;
}

const LAST_PAUSE_MS = 500;
/** How often the connection is tested, and the timeout of the test: one of its ends may be gone silently. */
const BEAT_MS = 3000;
const ANSWER_MS = 3000;

/** Runs a statement on the connection. */
export type Run = (text: string, values?: unknown[]) => Promise<unknown[][]>;

export class Listener {
  readonly #options: ListenerOptions;
  #client: PgClient | undefined;
  /** A client that is connecting. */
  #next: PgClient | undefined;
  #connecting: Promise<void> | undefined;
  #beat: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  get connected(): boolean {
    return this.#client !== undefined;
  }

  /** Resolves when the listener is connected, or after `patienceMs`. */
  async start(patienceMs: number): Promise<void> {
    this.#connecting ??= this.#run();
    if (!this.connected) await within(patienceMs, this.#connecting);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#beat);
    this.#next?.connection.stream.destroy();
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    void within(
      ANSWER_MS / 3,
      client.end().catch(() => undefined),
    ).then(() => client.connection.stream.destroy());
  }

  /** Retries until the listener is connected or closed. */
  async #run(): Promise<void> {
    for (let tries = 1; !this.#closed; tries += 1) {
      if (await this.#connect()) return;
      // The pause must not keep the process alive.
      await sleep(retryPauseMs(tries, LAST_PAUSE_MS), undefined, { ref: false });
    }
  }

  async #connect(): Promise<boolean> {
    const client = this.#options.connect();
    this.#next = client;
    const run: Run = async (text, values = []) => {
      const answer = await within(ANSWER_MS, client.query({ text, values, rowMode: 'array' }));
      if (answer === undefined) throw new Error('no answer');
      return answer.rows;
    };
    let lost = false;
    const onLost = (): void => {
      if (lost) return;
      lost = true;
      client.connection.stream.destroy();
      if (this.#client === client) this.#lose();
    };
    client.on('error', onLost);
    client.on('end', onLost);
    client.on('notification', ({ payload }: { payload?: string }) => {
      if (payload !== undefined && this.#client === client) this.#options.onMessage(payload);
    });
    try {
      await client.connect();
      await run(sqlOf('schema/keepalives'));
      await run(`LISTEN ${this.#options.channel}`);
      await this.#options.onConnecting(run);
      if (lost || this.#closed) throw new Error('lost');
    } catch {
      client.connection.stream.destroy();
      this.#options.onLost();
      return false;
    } finally {
      this.#next = undefined;
    }
    client.unref?.();
    this.#client = client;
    this.#beat = setInterval(() => void run('SELECT 1').catch(onLost), BEAT_MS).unref();
    this.#options.onConnected();
    return true;
  }

  #lose(): void {
    this.#client = undefined;
    clearInterval(this.#beat);
    if (this.#closed) return;
    this.#options.onLost();
    this.#connecting = this.#run();
  }
}
