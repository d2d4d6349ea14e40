// Calls listeners when their queue may have changed. A watcher arms its queue and reads its version in the same step (`watch` in
// lua/queues.lua); the next change is published and disarms the queue. So an idle queue costs nothing, and a busy queue publishes only as
// often as it is armed.
// If a message is lost, the version has moved: every watcher polls once a second, whether or not the subscription works.
import type { WatchedChange } from '../contract/index.js';
import type { Dialer } from './driver/dial.js';
import type { Link } from './driver/link.js';
import { type Runner, tagOf } from './driver/runner.js';
import { Subscriber } from './driver/subscriber.js';

export interface WakeOptions {
  run: Runner;
  link: Link;
  dialer: Dialer;
  prefix: string;
  connectTimeout: number;
}

const POLL_MS = 1000;
/** If a queue was quiet for QUIET_MS, it is armed again at once. If it changes all the time, the pause grows up to LONGEST_PAUSE_MS. */
const QUIET_MS = 50;
const LONGEST_PAUSE_MS = 16;
/**
 * A worker that is woken claims at once, and a claim that gets too few jobs arms the queue itself. The pause delays the poll until that
 * claim is done.
 */
const JOBS_PAUSE_MS = 25;

interface Watched {
  queue: string;
  what: WatchedChange;
  listeners: Set<() => void>;
  version: string | undefined;
  armedAt: number;
  pauseMs: number;
  looking: boolean;
  lookAgain: boolean;
  again: NodeJS.Timeout | undefined;
}

export class Wake {
  readonly #options: WakeOptions;
  readonly #watched = new Map<string, Watched>();
  #subscriber: Subscriber | undefined;
  #poll: NodeJS.Timeout | undefined;

  constructor(options: WakeOptions) {
    this.#options = options;
  }

  watch(queue: string, listener: () => void, what: WatchedChange): () => void {
    const channel = this.#channelOf(queue, what);
    // Each watch gets its own function, so that one listener can watch twice and stop one of both.
    const call = (): void => listener();
    const watched = this.#watched.get(channel) ?? this.#begin(channel, queue, what);
    watched.listeners.add(call);
    return () => {
      watched.listeners.delete(call);
      if (watched.listeners.size === 0 && this.#watched.get(channel) === watched) this.#end(channel, watched);
    };
  }

  /**
   * Wakes the workers of this process right after it has sent jobs to the queue: they need not wait for the message. Their claims follow
   * the jobs on the same connection.
   */
  sent(queue: string): void {
    const watched = this.#watched.size > 0 ? this.#watched.get(this.#channelOf(queue, 'jobs')) : undefined;
    if (watched !== undefined) fire(watched);
  }

  close(): void {
    for (const [channel, watched] of this.#watched) this.#end(channel, watched);
  }

  #begin(channel: string, queue: string, what: WatchedChange): Watched {
    const watched: Watched = {
      queue,
      what,
      listeners: new Set(),
      version: undefined,
      armedAt: 0,
      pauseMs: 0,
      looking: false,
      lookAgain: false,
      again: undefined,
    };
    this.#watched.set(channel, watched);
    this.#poll ??= setInterval(() => this.#lookAtAll(), POLL_MS).unref();
    if (this.#subscriber === undefined) this.#subscriber = this.#subscribe();
    else void this.#subscriber.change('subscribe', channel);
    void this.#look(watched);
    return watched;
  }

  #end(channel: string, watched: Watched): void {
    this.#watched.delete(channel);
    clearTimeout(watched.again);
    watched.listeners.clear();
    if (this.#watched.size > 0) {
      void this.#subscriber?.change('unsubscribe', channel);
      return;
    }
    clearInterval(this.#poll);
    this.#poll = undefined;
    this.#subscriber?.close();
    this.#subscriber = undefined;
  }

  #subscribe(): Subscriber {
    const { link, dialer, connectTimeout } = this.#options;
    return new Subscriber({
      link,
      dialer,
      connectTimeout,
      channels: () => [...this.#watched.keys()],
      onMessage: (channel, version) => {
        const watched = this.#watched.get(channel);
        if (watched !== undefined) this.#received(watched, version);
      },
      onConnected: () => this.#lookAtAll(),
    });
  }

  #lookAtAll(): void {
    for (const watched of this.#watched.values()) void this.#look(watched);
  }

  /** Arms the queue, and calls the listeners if a change came before. */
  async #look(watched: Watched): Promise<void> {
    if (watched.looking) {
      watched.lookAgain = true;
      return;
    }
    watched.looking = true;
    try {
      do {
        watched.lookAgain = false;
        const version = String(await this.#options.run('watch', watched.queue, [watched.what]));
        watched.armedAt = performance.now();
        if (version === watched.version) continue;
        // The first poll counts as a change: the queue may have changed between the watcher's own read and this poll.
        watched.version = version;
        fire(watched);
      } while (watched.lookAgain);
    } catch {
      // The watchers' own calls report the error, and the next poll follows within a second.
    } finally {
      watched.looking = false;
    }
  }

  #received(watched: Watched, version: string): void {
    const quiet = performance.now() - watched.armedAt > QUIET_MS;
    watched.pauseMs = quiet ? 0 : Math.min(LONGEST_PAUSE_MS, watched.pauseMs * 2 + 1);
    watched.version = version;
    const pauseMs = watched.what === 'jobs' ? JOBS_PAUSE_MS : watched.pauseMs;
    watched.again ??= setTimeout(() => {
      watched.again = undefined;
      void this.#look(watched);
    }, pauseMs).unref();
    fire(watched);
  }

  #channelOf(queue: string, what: WatchedChange): string {
    return `${tagOf(this.#options.prefix, queue)}:${what}-wake`;
  }
}

/** Calls all listeners. A listener may stop watching, or start a new watch, while the others are called. */
function fire({ listeners }: Watched): void {
  const calls = [...listeners];
  for (const call of calls) if (listeners.has(call)) call();
}
