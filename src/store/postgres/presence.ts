// This process as others see it: an advisory lock that the listener's connection holds for as long as the process lives (probe.ts).
// A connection can break while the process lives. Then the sessions say at once that the lock means nothing, or they would be cut
// short although they are renewed; and they say that it counts again when it is held again.
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADVISORY } from './advisory.js';
import { attest } from './probe.js';
import type { Server } from './server.js';

/** Somebody may be looking at the lock at this moment. */
const TRIES = 50;
const TRY_MS = 5;

export class Presence {
  readonly #server: Server;
  readonly key = randomInt(2 ** 31 - 1);
  #named = false;
  #held = false;
  /** The last word to the sessions, one after the other. */
  #telling: Promise<void> = Promise.resolve();

  constructor(server: Server) {
    this.#server = server;
  }

  get held(): boolean {
    return this.#held;
  }

  /** On the listener's connection. */
  async hold(run: (text: string) => Promise<unknown[][]>): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const rows = await run(`SELECT pg_try_advisory_lock(${ADVISORY.presence}, ${this.key})`);
      if (rows[0]?.[0] === true) return this.#turn(true);
      await sleep(TRY_MS);
    }
    throw new Error('the lock of this process is held by somebody else');
  }

  lost(): void {
    this.#turn(false);
  }

  /** A session was opened with what `held` said before: that may have changed meanwhile. */
  named(held: boolean): void {
    this.#named = true;
    if (held !== this.#held) this.#tell();
  }

  #turn(held: boolean): void {
    if (this.#held === held) return;
    this.#held = held;
    if (this.#named) this.#tell();
  }

  #tell(): void {
    // A failure is the server's, and then nobody can suspect us either; the next turn says it again.
    this.#telling = this.#telling.then(() => attest(this.#server, this.key, this.#held)).catch(() => undefined);
  }
}
