// Holds the proof that this process lives: an advisory lock on the listener's connection (probe.ts).
// The connection can break while the process lives. Then its sessions must say at once that the lock means nothing; otherwise probes
// would shorten them although they are renewed. When the next lock is held, the sessions name that one. Each connection has its own lock,
// because the server may keep a silently broken connection, and its lock, for long.
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Run } from '../driver/listener.js';
import { sqlOf } from '../driver/sql.js';
import { retryPauseMs } from '../../../runtime/retry-pause.js';
import type { Server } from '../driver/server.js';

const LAST_PAUSE_MS = 1000;
/** Timeout of an attest. It is sent after a connection was lost, and may get another dead connection: it must not wait long for that. */
const ATTEST_MS = 2_000;

/** Names the process that opened a session. */
export interface Vouching {
  presence: number | null;
  /** The advisory lock that the process holds now. Null: none. */
  vouched: number | null;
}

export class Presence {
  readonly #server: Server;
  readonly #presence = randomInt(2 ** 31 - 1);
  #vouched: number | null = null;
  /** The lock that the sessions name in the store. Undefined: there are none. NaN: they may differ. */
  #attested: number | null | undefined;
  #opened = 0;
  #attesting = false;
  #turn = 0;
  #closed = false;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Takes a new lock on the listener's connection. */
  async hold(run: Run): Promise<void> {
    const lock = randomInt(2 ** 31 - 1);
    const rows = await run(sqlOf('schema/hold-presence'), [lock]);
    if (rows[0]?.[0] !== true) throw new Error('another process drew the same number');
    this.#vouched = lock;
    void this.#attest();
  }

  lost(): void {
    this.#vouched = null;
    void this.#attest();
  }

  /** Opens a session that names this process. The lock may change while the session is opened. */
  async name(open: (vouching: Vouching) => Promise<void>): Promise<void> {
    const vouched = this.#vouched;
    await open({ presence: this.#presence, vouched });
    this.#opened += 1;
    if (this.#attested === undefined) this.#attested = vouched;
    else if (this.#attested !== vouched) this.#attested = Number.NaN;
    void this.#attest();
  }

  close(): void {
    this.#closed = true;
  }

  /** Retries until the sessions name the right lock: a session that names a free lock would be suspected again and again. */
  async #attest(): Promise<void> {
    if (this.#attesting) return;
    this.#attesting = true;
    let failures = 0;
    while (this.#attested !== undefined && this.#attested !== this.#vouched && !this.#closed) {
      const vouched = this.#vouched;
      const opened = this.#opened;
      try {
        this.#turn += 1;
        const values = { presence: this.#presence, vouched, turn: this.#turn };
        await this.#server.ask('attest', values, ATTEST_MS);
        // A session that was opened meanwhile may have been written after this attest.
        this.#attested = opened === this.#opened ? vouched : Number.NaN;
      } catch {
        failures += 1;
        await sleep(retryPauseMs(failures, LAST_PAUSE_MS), undefined, { ref: false });
      }
    }
    this.#attesting = false;
  }
}
