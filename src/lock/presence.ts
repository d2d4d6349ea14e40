// Shows that a process listens to a queue: a session without slots and locks, renewed on the event loop. It decides nothing. If the store
// ends the session, because the process was away for too long, the next one is opened.
import { renewers } from '../background/renewers.js';
import { isRetryable, toError } from '../errors.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import { within } from '../runtime/within.js';
import type { StoreLease } from '../store/open.js';
import { checkSessionOptions } from '../session/session-options.js';
import { SessionOwner } from '../session/session-owner.js';

export interface PresenceOptions {
  queue: string;
  /** The owner's name of the session. */
  name: string;
  lease: StoreLease;
  onError(error: Error): void;
}

const DURATION_MS = 30_000;
const RENEW_MS = 10_000;
const RETRY_MS = 1000;
const CLOSE_MS = 5000;

export class Presence {
  readonly #owner: SessionOwner;
  readonly #onError: (error: Error) => void;
  #opening: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isReported = false;

  constructor(options: PresenceOptions) {
    this.#onError = options.onError;
    // Losing the session costs an entry in a list, so it needs no thread.
    const sessionOptions = checkSessionOptions({
      lockDuration: DURATION_MS,
      useDedicatedLockThread: false,
      skipStalledCheck: true,
    });
    const ignored = (): void => undefined;
    this.#owner = new SessionOwner({
      ...options,
      sessionOptions,
      renewers,
      durationMs: DURATION_MS,
      renewMs: RENEW_MS,
      slots: 0,
      listenerFor: (session) => ({
        renewed: ignored,
        noticed: ignored,
        lost: () => {
          this.#owner.drop(session);
          void this.opened();
        },
        swept: ignored,
        undone: ignored,
        // The reader of the event log reports the outage.
        failed: ignored,
        threaded: ignored,
        blocked: ignored,
      }),
    });
  }

  /** Opens the session unless one is open. Resolves when that has succeeded or failed; after a failure it is tried again. */
  opened(): Promise<void> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    // If the store does not reply, the session expires by itself.
    await within(CLOSE_MS, this.#owner.close()).catch(() => undefined);
  }

  async #open(): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.#owner.session();
      this.#isReported = false;
    } catch (thrown) {
      if (this.#isClosed) return;
      if (!isRetryable(thrown) && !this.#isReported) {
        this.#isReported = true;
        this.#onError(toError(thrown));
      }
      this.#retry = setTimeout(() => void this.opened(), RETRY_MS).unref();
    }
  }
}
