// Tells watchers that their queue may have changed: at once after a call of this store, by NOTIFY after those of others, and by a look
// at a counter every second, which is the only way behind a pooler and the safety net elsewhere.
import { HoldfastError } from '../../errors.js';
import { Notifier } from './notify.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';

const POLL_MS = 1000;

export const WAKE_FUNCTIONS =
  // Every call that changes a queue takes a number from here, a moment before it commits.
  verb(
    'change_number()',
    'text',
    `
BEGIN
  RETURN (SELECT last_value FROM journal_number_seq);
END`,
  ) +
  verb(
    'notify_changes(_channel text, _payloads text[])',
    'text',
    `
BEGIN
  PERFORM pg_notify(_channel, payload) FROM unnest(_payloads) payload;
  RETURN 'null';
END`,
  );

export interface WakeOptions {
  server: Server;
  /** Names this store in what it tells, so that it does not wake itself. */
  id: string;
  channel: string;
  notify: boolean;
}

export class Wake {
  readonly #options: WakeOptions;
  readonly #notifier: Notifier | undefined;
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #due = new Set<() => void>();
  #poll: NodeJS.Timeout | undefined;
  #polling = false;
  #seen: number | undefined;
  #stirred = false;
  #firing: NodeJS.Immediate | undefined;

  constructor(options: WakeOptions) {
    this.#options = options;
    const { server, id, channel, notify } = options;
    const send = (queues: string[]) => server.call('notify_changes', [channel, queues.map((queue) => `${id}:${queue}`)]);
    this.#notifier = notify ? new Notifier(send) : undefined;
  }

  watch(queue: string, listener: () => void): () => void {
    // A function of its own, so that one listener may watch twice and stop once.
    const call = (): void => listener();
    const listeners = this.#listeners.get(queue) ?? new Set();
    this.#listeners.set(queue, listeners.add(call));
    this.#poll ??= setInterval(() => void this.#look(), POLL_MS).unref();
    return () => {
      listeners.delete(call);
      this.#due.delete(call);
      if (listeners.size === 0 && this.#listeners.get(queue) === listeners) this.#listeners.delete(queue);
      if (this.#listeners.size === 0) this.#stopPolling();
    };
  }

  /** After a call of this store. `work`: there may be something to claim now. */
  signal(queue: string, work: boolean): void {
    this.#enqueue([queue]);
    this.#notifier?.changed(queue, work);
  }

  /** The arguments of notify_changes for a transaction of the user's, of which nobody here will know when it commits. */
  notification(queue: string): [channel: string, payloads: string[]] | undefined {
    return this.#notifier === undefined ? undefined : [this.#options.channel, [`:${queue}`]];
  }

  /** What another store told. */
  hear(payload: string): void {
    const colon = payload.indexOf(':');
    if (payload.slice(0, colon) !== this.#options.id) this.#enqueue([payload.slice(colon + 1)]);
  }

  /** Something may have been missed. */
  wakeAll(): void {
    this.#enqueue([...this.#listeners.keys()]);
  }

  async close(): Promise<void> {
    this.#stopPolling();
    clearImmediate(this.#firing);
    this.#listeners.clear();
    await this.#notifier?.close();
  }

  /** Numbers are taken before the commit: what a change is seen of for the first time may become visible only by the next look. */
  async #look(): Promise<void> {
    if (this.#polling) return;
    this.#polling = true;
    try {
      const number = await this.#options.server.call<number>('change_number', []);
      const changed = this.#seen !== undefined && number !== this.#seen;
      this.#seen = number;
      if (changed || this.#stirred) this.wakeAll();
      this.#stirred = changed;
    } catch (error) {
      // The calls of the watchers tell what is wrong; when it is over, they are to look.
      this.#stirred = error instanceof HoldfastError;
    } finally {
      this.#polling = false;
    }
  }

  #enqueue(queues: string[]): void {
    for (const queue of queues) for (const call of this.#listeners.get(queue) ?? []) this.#due.add(call);
    if (this.#due.size > 0) this.#firing ??= setImmediate(this.#fire);
  }

  readonly #fire = (): void => {
    this.#firing = undefined;
    const due = [...this.#due];
    this.#due.clear();
    for (const call of due) call();
  };

  #stopPolling(): void {
    clearInterval(this.#poll);
    this.#poll = undefined;
  }
}
