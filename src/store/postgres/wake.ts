// Tells watchers that their queue may have changed: at once after a call of this store, by NOTIFY after those of others, and by a look
// at the versions of the watched queues every second, which is the only way behind a pooler and the safety net elsewhere. Whoever waits
// for jobs, or for a named lock, is not woken by what only others want to know, but for the look, which does not tell them apart.
import { journalOf } from './journal-rows.js';
import { HoldfastError } from '../../errors.js';
import type { ClaimReply, WatchedChange } from '../contract/index.js';
import { DueCalls } from '../due-calls.js';
import { type Brings, type Change, Notifier } from './notify.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';

const POLL_MS = 1000;
/** How long a look may take: it is also how a worker that has nothing to do learns that the server is gone. */
const ANSWER_MS = 3000;

const NOTIFY = 'SELECT pg_notify($1, payload) FROM unnest($2::text[]) payload';

export const WAKE_FUNCTIONS =
  // Exact at the moment of the commit, however long a transaction was open: a number that is taken before would be passed by.
  verb(
    'versions_of(_names text[])',
    'text',
    `
BEGIN
  RETURN (SELECT json_agg((
    SELECT q.last_event + coalesce((SELECT sum(events) FROM ${journalOf('q')}), 0) || ' ' || q.paused || ' ' || q.limited_until
      || ' ' || coalesce(q.max_active, -1)
    FROM queues q WHERE q.name = r.name
  ) ORDER BY n) FROM unnest(_names) WITH ORDINALITY r(name, n));
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
  /** Whether notifications are heard. */
  listens: boolean;
  /** The server does not answer, and no call has told it. */
  onTrouble(error: HoldfastError): void;
}

interface Watched {
  /** Null: nobody has used the queue. Undefined: not known yet. */
  version: string | null | undefined;
  /** The last claim from here got less than it asked for: who made it takes what comes. */
  idle: boolean;
  readonly listeners: Map<() => void, WatchedChange>;
}

export class Wake {
  readonly #options: WakeOptions;
  readonly #notifier: Notifier | undefined;
  readonly #watched = new Map<string, Watched>();
  readonly #due = new DueCalls();
  #poll: NodeJS.Timeout | undefined;
  #looking = false;
  #outage = false;

  constructor(options: WakeOptions) {
    this.#options = options;
    const { server, id, channel, notify } = options;
    const send = async (changes: Change[]): Promise<void> => {
      const values = [channel, changes.map((change) => payloadOf(id, change))];
      if ((await server.short('notify', NOTIFY, values)) === undefined) await server.call('notify_changes', values);
    };
    this.#notifier = notify ? new Notifier(send) : undefined;
  }

  watch(queue: string, listener: () => void, what: WatchedChange): () => void {
    // A function of its own, so that one listener may watch twice and stop once.
    const call = (): void => listener();
    const watched = this.#watched.get(queue) ?? { version: undefined, idle: false, listeners: new Map() };
    this.#watched.set(queue, watched);
    watched.listeners.set(call, what);
    this.#poll ??= setInterval(() => void this.#look(), POLL_MS).unref();
    if (watched.version === undefined) void this.#compare([queue]);
    return () => {
      watched.listeners.delete(call);
      this.#due.drop(call);
      if (watched.listeners.size === 0 && this.#watched.get(queue) === watched) this.#watched.delete(queue);
      if (this.#watched.size === 0) this.#stopPolling();
    };
  }

  /** After a call of this store. */
  signal(queue: string, brings: Brings): void {
    this.#enqueue({ queue, brings });
    this.#notifier?.changed(queue, brings);
  }

  /** After an add. `told`: what `telling` said was told. */
  added(queue: string, count: number, told: boolean): void {
    this.#enqueue({ queue, brings: 'jobs' });
    const watched = this.#watched.get(queue);
    const isOurs = count === 1 && watched?.idle === true;
    // Whoever does not come for it this time is not waited for again.
    if (watched !== undefined) watched.idle = false;
    if (told) this.#notifier?.told();
    else this.#notifier?.changed(queue, 'jobs', isOurs);
  }

  /** A claim leaves. Answers what `claimed` wants to know. */
  claiming(queue: string): number {
    const watched = this.#watched.get(queue);
    if (watched !== undefined) watched.idle = false;
    return this.#notifier?.changes ?? 0;
  }

  claimed(queue: string, changes: number, count: number, { jobs, drained, nextInMs }: ClaimReply): void {
    const watched = this.#watched.get(queue);
    if (watched !== undefined) watched.idle = jobs.length < count;
    // Of jobs that fall due later everybody has to know.
    if (drained && nextInMs === undefined) this.#notifier?.taken(queue, changes);
  }

  /** What a call that brings jobs may tell by itself, if it may. */
  telling(queue: string): [channel: string, payload: string] | undefined {
    if (this.#notifier?.isQuiet !== true || this.#watched.get(queue)?.idle === true) return undefined;
    return [this.#options.channel, payloadOf(this.#options.id, { queue, brings: 'jobs' })];
  }

  /** The arguments of notify_changes for a transaction of the user's, of which nobody here will know when it commits. */
  notification(queue: string): [channel: string, payloads: string[]] | undefined {
    return this.#notifier === undefined ? undefined : [this.#options.channel, [payloadOf('', { queue, brings: 'jobs' })]];
  }

  /** What another store told. */
  hear(payload: string): void {
    const [, id, mark = '', queue] = /^(\w*)([:;!*])(.*)$/s.exec(payload) ?? [];
    if (queue !== undefined && id !== this.#options.id) this.#enqueue({ queue, brings: BRINGS[mark] ?? 'both' });
  }

  /** Something may have been missed. */
  wakeAll(): void {
    for (const queue of this.#watched.keys()) this.#enqueue({ queue, brings: 'both' });
  }

  async close(): Promise<void> {
    this.#stopPolling();
    this.#due.stop();
    this.#watched.clear();
    await this.#notifier?.close();
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const queues = [...this.#watched.keys()];
    // Versions do not tell of named locks: a number for them would have to be written with every lock that is let go.
    if (!this.#options.listens) for (const queue of queues) this.#enqueue({ queue, brings: 'locks' });
    await this.#compare(queues);
    this.#looking = false;
  }

  async #compare(queues: string[]): Promise<void> {
    const { server, onTrouble } = this.#options;
    try {
      const versions = (await server.ask<(string | null)[] | null>('versions_of', [queues], ANSWER_MS)) ?? [];
      this.#outage = false;
      for (const [index, queue] of queues.entries()) {
        const watched = this.#watched.get(queue);
        const version = versions[index] ?? null;
        if (watched === undefined || watched.version === version) continue;
        // The first look counts as a change: something may have come between the watcher's own look and this one.
        watched.version = version;
        this.#enqueue({ queue, brings: 'both' });
      }
    } catch (error) {
      const known = this.#outage || server.told || this.#poll === undefined;
      if (error instanceof HoldfastError && !known) onTrouble(error);
      this.#outage = true;
    }
  }

  #enqueue({ queue, brings }: Change): void {
    for (const [call, what] of this.#watched.get(queue)?.listeners ?? []) {
      if (what === 'events' || what === brings || brings === 'both') this.#due.add(call);
    }
  }

  #stopPolling(): void {
    clearInterval(this.#poll);
    this.#poll = undefined;
  }
}

const MARKS: Record<Brings, string> = { jobs: ':', news: ';', locks: '!', both: '*' };
const BRINGS = Object.fromEntries(Object.entries(MARKS).map(([brings, mark]) => [mark, brings as Brings]));

/** Who tells it, what it brings, and the queue. */
function payloadOf(id: string, { queue, brings }: Change): string {
  return `${id}${MARKS[brings]}${queue}`;
}
