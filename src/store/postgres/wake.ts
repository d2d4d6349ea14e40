// Notifies watchers that their queue may have changed: at once after a call of this store, by NOTIFY after calls of other stores, and by
// polling. The poll compares the versions of the watched queues every second: behind a pooler it is the only way, elsewhere it is the
// fallback. A watcher of jobs is woken only by changes that bring jobs, a watcher of named locks only by released locks. The poll cannot
// tell the kinds apart, and wakes all watchers.
import { HoldfastError } from '../../errors.js';
import type { ClaimReply, WatchedChange } from '../contract/index.js';
import { DueCalls } from '../due-calls.js';
import { type Brings, type Change, Notifier } from './driver/notify.js';
import type { Server } from './driver/server.js';

const POLL_MS = 1000;
/** Timeout of one poll. A worker with nothing to do learns through it that the server is gone. */
const ANSWER_MS = 3000;

export interface WakeOptions {
  server: Server;
  /** Identifies this store in its notifications, so that the store does not wake itself. */
  id: string;
  channel: string;
  notify: boolean;
  /** True if this store receives notifications. */
  listens: boolean;
  /** Called if the server does not reply and no failed call has reported that. */
  onTrouble(error: HoldfastError): void;
}

interface Watched {
  /** Null: the queue was never used. Undefined: not known yet. */
  version: string | null | undefined;
  /** True if the last claim of this store got less than it requested: its worker takes the next jobs. */
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
      const values = { channel, payloads: changes.map((change) => payloadOf(id, change)) };
      if ((await server.short('notify', values)) === undefined) await server.call('notify_changes', values);
    };
    this.#notifier = notify ? new Notifier(send) : undefined;
  }

  watch(queue: string, listener: () => void, what: WatchedChange): () => void {
    // Each watch gets its own function, so that one listener may watch twice and stop once.
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

  /** Wakes local watchers and notifies other processes, after a call of this store. */
  signal(queue: string, brings: Brings): void {
    this.#enqueue({ queue, brings });
    this.#notifier?.changed(queue, brings);
  }

  /** Called after an add. `notified`: the add has sent the notification that `ownNotification` returned. */
  added(queue: string, count: number, notified: boolean): void {
    this.#enqueue({ queue, brings: 'jobs' });
    const watched = this.#watched.get(queue);
    const isOurs = count === 1 && watched?.idle === true;
    // Give the idle worker one chance only: if it does not claim this job, do not wait for it again.
    if (watched !== undefined) watched.idle = false;
    if (notified) this.#notifier?.sentByAdd();
    else this.#notifier?.changed(queue, 'jobs', isOurs);
  }

  /** Called before a claim is sent. Returns the number that `claimed` needs. */
  claiming(queue: string): number {
    const watched = this.#watched.get(queue);
    if (watched !== undefined) watched.idle = false;
    return this.#notifier?.changes ?? 0;
  }

  claimed(queue: string, changes: number, count: number, { jobs, drained, nextInMs }: ClaimReply): void {
    const watched = this.#watched.get(queue);
    if (watched !== undefined) watched.idle = jobs.length < count;
    // If jobs fall due later, every process must know, so the notification stays urgent.
    if (drained && nextInMs === undefined) this.#notifier?.taken(queue, changes);
  }

  /** Returns the notification that an add may send by itself, or undefined if the add must not. */
  ownNotification(queue: string): [channel: string, payload: string] | undefined {
    if (this.#notifier?.isQuiet !== true || this.#watched.get(queue)?.idle === true) return undefined;
    return [this.#options.channel, payloadOf(this.#options.id, { queue, brings: 'jobs' })];
  }

  /** Returns the arguments of notify_changes for a transaction of the user: this process does not know when it commits. */
  notification(queues: string[]): [channel: string, payloads: string[]] | undefined {
    if (this.#notifier === undefined) return undefined;
    return [this.#options.channel, queues.map((queue) => payloadOf('', { queue, brings: 'jobs' }))];
  }

  /** Handles a notification of another store. */
  receive(payload: string): void {
    const [, id, mark = '', queue] = /^(\w*)([:;!*])(.*)$/s.exec(payload) ?? [];
    if (queue !== undefined && id !== this.#options.id) this.#enqueue({ queue, brings: BRINGS[mark] ?? 'both' });
  }

  /** Wakes all watchers: a notification may have been missed. */
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
    // Versions do not cover named locks: every release of a lock would have to write a number for that.
    if (!this.#options.listens) for (const queue of queues) this.#enqueue({ queue, brings: 'locks' });
    await this.#compare(queues);
    this.#looking = false;
  }

  async #compare(queues: string[]): Promise<void> {
    const { server, onTrouble } = this.#options;
    try {
      const versions = (await server.ask<(string | null)[] | null>('versions_of', { names: queues }, ANSWER_MS)) ?? [];
      this.#outage = false;
      for (const [index, queue] of queues.entries()) {
        const watched = this.#watched.get(queue);
        const version = versions[index] ?? null;
        if (watched === undefined || watched.version === version) continue;
        // The first poll counts as a change: a change may have come between the watcher's own read and this poll.
        watched.version = version;
        this.#enqueue({ queue, brings: 'both' });
      }
    } catch (error) {
      const known = this.#outage || server.hasReported || this.#poll === undefined;
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

/** The format: the sender's id, the kind of change, the queue. */
function payloadOf(id: string, { queue, brings }: Change): string {
  return `${id}${MARKS[brings]}${queue}`;
}
