// Delivers messages between queues: takes them from the outbox of the sending queue (lua/families.lua) to the receiving queue. On one
// server, or in one slot of a cluster, one script takes and applies them. Between two slots these are two steps: the receiving queue keeps
// the number of the last message that it has applied, so a message that is delivered twice is applied once.
import { within } from '../../../runtime/within.js';
import type { RelayReply } from '../../contract/index.js';
import type { Argument } from '../driver/driver.js';
import { type Runner, tagOf } from '../driver/runner.js';
import type { Registry } from './registry.js';

/** How long a call waits for the delivery of its own messages, in ms. Then it returns, and the delivery goes on. */
const PATIENCE_MS = 50;
/** The work of one script: messages, or jobs that a message adds. */
const WORK_AT_ONCE = 100;
/** Queues of each kind that one relay looks at. */
const QUEUES_AT_ONCE = 20;
/** Queues whose tags a settle sends with it, so that its script reaches them. */
const MOST_NEAR = 4;
/** Steps from queue to queue that one call follows at most. */
const MOST_STEPS = 1000;

/** How long a sweep waits for the check of waiting parents, in ms. */
const CHECK_PATIENCE_MS = 1000;
/** A check looks at this many parents and links. It passes over parents that began to wait less than this many ms ago. */
const CHECKED_PARENTS = 50;
const CHECKED_LINKS = 500;
const CHECKED_AFTER_MS = 60_000;
const TEXTS_OF_LINK = 3;

export interface RelaysOptions {
  run: Runner;
  registry: Registry;
  prefix: string;
  isCluster: () => boolean;
}

export interface Pair {
  from: string;
  to: string;
}

/** The ways of the messages of an add. */
export interface Routes {
  levels: Pair[][];
  /** How many steps the messages hold at most. */
  steps: number;
}

interface Delivered {
  count: number;
  more: boolean;
  /** The queues that the receiving queue has messages for now. */
  sentTo: string[];
}

export class Relays {
  readonly #options: RelaysOptions;
  /** The delivery between two queues that runs now, and the one that follows it. */
  readonly #running = new Map<string, { now: Promise<boolean>; next?: Promise<boolean> }>();
  /** By queue: its name, and the names and tags of the queues in the same slot that it has sent messages to. */
  readonly #near = new Map<string, string[]>();

  constructor(options: RelaysOptions) {
    this.#options = options;
  }

  /** Delivers messages that a call has just written. Does not reject: any process can deliver the rest later. */
  async after(from: string, receivers: string[]): Promise<void> {
    const pairs = receivers.map((to): Pair => ({ from, to }));
    const delivery = this.#settle(pairs, 1);
    await within(
      PATIENCE_MS,
      delivery.catch(() => undefined),
    );
  }

  /**
   * Delivers the messages of an add. Waits until they are applied, by this process or another, because the caller may read the jobs next.
   */
  async afterAdd({ levels, steps }: Routes): Promise<void> {
    try {
      // The messages of a level are written when those of the level before are applied.
      for (const pairs of levels) await this.#settle(pairs, 1 + Math.ceil(steps / MOST_STEPS));
    } catch {
      // Any process can deliver what is left.
    }
  }

  /** `rounds`: a queue that still has messages after them is busy with those of others. */
  async #settle(pairs: Pair[], rounds: number): Promise<void> {
    for (const pair of pairs) {
      this.#options.registry.ensure(pair.to);
      this.#noteNear(pair);
    }
    const deliver = async (pair: Pair): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) if (await this.#soon(pair)) return;
    };
    await Promise.all(pairs.map(deliver));
  }

  /** Writes what `plain-settle` in lua/settle.lua needs to apply the ends of children to their parents in the same step. Queues that send no messages need nothing. */
  writeNear(args: Argument[], queue: string): void {
    const near = this.#near.get(queue);
    if (near !== undefined) args.push(...near);
  }

  #noteNear(pair: Pair): void {
    const near = this.#near.get(pair.from) ?? [pair.from];
    if (near.length > 2 * MOST_NEAR || near.includes(pair.to, 1) || !this.#isNear(pair)) return;
    near.push(pair.to, tagOf(this.#options.prefix, pair.to));
    this.#near.set(pair.from, near);
  }

  async relay(queue: string, limit: number): Promise<RelayReply> {
    const { run } = this.#options;
    const [receivers, kin] = (await run('kin', queue, [QUEUES_AT_ONCE])) as [string[], string[]];
    const pairs = receivers.map((to): Pair => ({ from: queue, to }));
    for (const from of kin) if (from !== queue) pairs.push({ from, to: queue });
    let delivered = 0;
    let more = false;
    for (const pair of pairs) {
      this.#options.registry.ensure(pair.to);
      for (let again = true; again; ) {
        if (delivered >= limit) return { delivered, more: true };
        const done = await this.#deliver(pair, Math.min(WORK_AT_ONCE, limit - delivered));
        delivered += done.count;
        again = done.more && done.count > 0;
        if (done.sentTo.length > 0) more = true;
      }
    }
    return { delivered, more };
  }

  /**
   * Repairs lost messages: reads the states of pending children, for parents that have waited for long. Otherwise a parent would wait
   * for ever if the failover of a slot lost a message, or the effect of a message that was deleted. Does not fail.
   */
  async check(queue: string): Promise<void> {
    await within(
      CHECK_PATIENCE_MS,
      this.#check(queue).catch(() => undefined),
    );
  }

  async #check(queue: string): Promise<void> {
    const { run } = this.#options;
    const links = (await run('overdue', queue, [CHECKED_PARENTS, CHECKED_LINKS, CHECKED_AFTER_MS])) as string[];
    const byQueue = new Map<string, string[]>();
    for (let at = 0; at < links.length; at += TEXTS_OF_LINK) {
      const [parent = '', child = '', bond = ''] = links.slice(at, at + TEXTS_OF_LINK);
      const end = child.indexOf('\n');
      const texts = byQueue.get(child.slice(0, end)) ?? [];
      texts.push(parent, child.slice(end + 1), bond);
      byQueue.set(child.slice(0, end), texts);
    }
    const asked = Array.from(byQueue, async ([from, texts]) => {
      const receivers = (await run('remind', from, [queue, ...texts])) as string[];
      if (receivers.length > 0) await this.after(from, receivers);
    });
    await Promise.all(asked);
  }

  /** Returns whether one of these queues has messages for the queue. */
  async anyTo(queue: string, senders: string[]): Promise<boolean> {
    const { run } = this.#options;
    const found = await Promise.all(senders.map((from) => run('outgoing', from, [queue, '', 1]) as Promise<string[]>));
    return found.some((messages) => messages.length > 0);
  }

  /**
   * Delivers what is in the outbox from now on. Calls that come while a delivery runs share the next one: it begins after they have written
   * their messages.
   */
  #soon(pair: Pair): Promise<boolean> {
    const name = `${pair.from}\n${pair.to}`;
    const running = this.#running.get(name);
    if (running === undefined) return this.#start(name, pair);
    running.next ??= running.now.then(
      () => this.#start(name, pair),
      () => this.#start(name, pair),
    );
    return running.next;
  }

  #start(name: string, pair: Pair): Promise<boolean> {
    const now = this.#follow(pair).finally(() => {
      if (this.#running.get(name)?.now === now) this.#running.delete(name);
    });
    this.#running.set(name, { now });
    return now;
  }

  /** Delivers all messages of a pair, and those that they cause in turn. Returns false if it has stopped before. */
  async #follow(first: Pair): Promise<boolean> {
    const pairs = [first];
    for (let step = 0; step < MOST_STEPS; step += 1) {
      const pair = pairs[0];
      if (pair === undefined) return true;
      const { count, more, sentTo } = await this.#deliver(pair, WORK_AT_ONCE);
      for (const to of sentTo) {
        this.#options.registry.ensure(to);
        if (!pairs.some((known) => known.from === pair.to && known.to === to)) pairs.push({ from: pair.to, to });
      }
      if (!more || count === 0) pairs.shift();
    }
    return false;
  }

  #deliver(pair: Pair, most: number): Promise<Delivered> {
    return this.#isNear(pair) ? this.#deliverNear(pair, most) : this.#deliverFar(pair, most);
  }

  /** True if one script can reach the keys of both queues. */
  #isNear({ from, to }: Pair): boolean {
    const { prefix, isCluster } = this.#options;
    return from === to || !isCluster() || slotTag(tagOf(prefix, from)) === slotTag(tagOf(prefix, to));
  }

  async #deliverNear({ from, to }: Pair, most: number): Promise<Delivered> {
    const { run, prefix } = this.#options;
    return readDelivered(await run('deliver', to, [to, from, tagOf(prefix, from), most]));
  }

  async #deliverFar({ from, to }: Pair, most: number): Promise<Delivered> {
    const { run } = this.#options;
    const messages = (await run('outgoing', from, [to, '', most])) as string[];
    if (messages.length === 0) return { count: 0, more: false, sentTo: [] };
    const { count, sentTo } = readDelivered(await run('deliver', to, [to, from, '', most, ...messages]));
    const left = (await run('outgoing', from, [to, messages[2 * (count - 1)] ?? '', 1])) as string[];
    return { count, more: left.length > 0, sentTo };
  }
}

function readDelivered(reply: unknown): Delivered {
  const [count, more, sentTo = []] = reply as [number, number, string[]?];
  return { count, more: more === 1, sentTo };
}

/** The part of a tag that decides about the slot of a cluster. */
function slotTag(tag: string): string {
  return tag.slice(0, tag.indexOf('}'));
}
