// The extras of the jobs that this process has claimed, by their tokens, so that a settle need not read them. They may have changed
// since: a statement that relies on them compares them with the row.

/** What a settle needs of a job with extras. */
export interface ClaimedExtras {
  text: string;
  group: string | undefined;
}

/** Tokens that are remembered at most. Tokens of lost locks are never settled. */
const REMEMBERED = 10_000;

export class ClaimedExtrasOf {
  readonly #byToken = new Map<string, ClaimedExtras>();

  remember(token: string, extras: ClaimedExtras): void {
    if (this.#byToken.size >= REMEMBERED) this.#byToken.clear();
    this.#byToken.set(token, extras);
  }

  /** Returns the extras of a job that is being settled, and forgets them. */
  take(token: string): ClaimedExtras | undefined {
    if (this.#byToken.size === 0) return undefined;
    const extras = this.#byToken.get(token);
    this.#byToken.delete(token);
    return extras;
  }
}
