// Tells watchers that their queue may have changed. A watcher arms its queue and learns its version in the same step; the next
// change is published and disarms it. So an idle queue costs nothing, a busy one publishes no more than its watchers ask for, and
// a message that was lost shows as a version that has moved: everybody looks once a second, whatever became of the subscription.
import type { WatchedChange } from '../contract/index.js';
import type { Dialer } from './dial.js';
import type { Link } from './link.js';
import { type Runner, tagOf } from './runner.js';
import { Subscriber } from './subscriber.js';

export interface WakeOptions {
  run: Runner;
  link: Link;
  dialer: Dialer;
  prefix: string;
  connectTimeout: number;
}

const POLL_MS = 1000;
/** A queue that was quiet for so long is armed again at once; one that changes all the time less and less often. */
const QUIET_MS = 50;
const LONGEST_PAUSE_MS = 16;
/** Who waits for jobs claims when it is told, and a claim that finds too few arms the queue itself; the look comes when that is done. */
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
    // A function of its own, so that one listener may watch twice and stop once.
    const call = (): void => listener();
    const watched = this.#watched.get(channel) ?? this.#begin(channel, queue, what);
    watched.listeners.add(call);
    return () => {
      watched.listeners.delete(call);
      if (watched.listeners.size === 0 && this.#watched.get(channel) === watched) this.#end(channel, watched);
    };
  }

  /**
   * This process has just sent jobs to the queue: who waits for some here need not wait for the message. What it asks for now goes behind
   * them on the same connection.
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
        if (watched !== undefined) this.#heard(watched, version);
      },
      onConnected: () => this.#lookAtAll(),
    });
  }

  #lookAtAll(): void {
    for (const watched of this.#watched.values()) void this.#look(watched);
  }

  /** Arms the queue, and tells of a change that came before. */
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
        // The first look counts as a change: something may have come between the watcher's own look and this one.
        watched.version = version;
        fire(watched);
      } while (watched.lookAgain);
    } catch {
      // The watchers' own calls tell what is wrong; the next look is near.
    } finally {
      watched.looking = false;
    }
  }

  #heard(watched: Watched, version: string): void {
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

/** A listener may stop watching, or watch anew, while the others are called. */
function fire({ listeners }: Watched): void {
  const calls = [...listeners];
  for (const call of calls) if (listeners.has(call)) call();
}
