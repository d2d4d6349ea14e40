// Remembers the outcomes that were applied in transactions of the user. This process does not know when these commit. The worker settles the
// run again after its handler has returned: no fast path applies to that call, and it delivers the messages of the transaction.
import type { Outcome } from '../../../job/outcome.js';

/** More runs than this are not followed: other processes deliver their messages within about a second. */
const MOST = 10_000;

export class Joined {
  /** Whether the call has written messages, by the token of the run. */
  readonly #sent = new Map<string, boolean>();

  note(outcomes: Outcome[], sent: boolean): void {
    for (const { token } of outcomes) this.#sent.set(token, sent);
    for (const token of this.#sent.keys()) {
      if (this.#sent.size <= MOST) break;
      this.#sent.delete(token);
    }
  }

  /** Returns whether any of these runs was settled in a transaction, and whether a transaction of one has written messages. */
  follow(outcomes: Outcome[]): { any: boolean; sent: boolean } {
    const follows = { any: false, sent: false };
    if (this.#sent.size === 0) return follows;
    for (const { token } of outcomes) {
      const sent = this.#sent.get(token);
      if (sent === undefined) continue;
      this.#sent.delete(token);
      follows.any = true;
      follows.sent ||= sent;
    }
    return follows;
  }
}
