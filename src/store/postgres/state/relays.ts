// Delivers messages between jobs of different queues. A call that ends, removes or retries a job writes its messages in its own transaction
// (the table `outbox`). A transaction of its own delivers them, because it has to lock jobs in another order than the call. The store
// delivers them right after the call. If that fails or takes long, claims and probes say `undone`, and any process delivers them later.
import { setTimeout as sleep } from 'node:timers/promises';
import { within } from '../../../runtime/within.js';
import type { RelayReply } from '../../contract/index.js';
import { KEEPING_MS, type Server, type Values } from '../driver/server.js';
import type { Wake } from '../wake.js';

/** How many messages one transaction delivers: they hold the locks of their jobs until it ends. */
const AT_ONCE = 100;
/** How often a delivery after a call goes on although it has found nothing to deliver, because another process delivers the messages. */
const IDLE_ROUNDS = 3;
/** The pause before such a round, in ms. */
const PAUSE_MS = 2;
/** How long a call waits for the delivery of its messages, in ms. The delivery goes on after that. */
const WAIT_MS = 500;

interface Relayed extends RelayReply {
  /** The receiving queues. */
  queues: string[];
  /** True if the delivery has written further messages, which the receiving queues send. */
  sent: boolean;
  /** The number of the newest message that the queue had sent before, and that of its oldest message now. Null: none. */
  newest: number | null;
  oldest: number | null;
}

type Run = (name: string, values: Values) => Promise<Relayed>;

/** Delivers messages for all calls of a store. Calls that end at the same time share one delivery. */
export class Relays {
  readonly #server: Server;
  readonly #wake: Wake;
  /** The delivery of each queue that has not begun yet. It resolves with the queues that send further messages. */
  readonly #next = new Map<string, Promise<string[]>>();
  readonly #running = new Map<string, Promise<string[]>>();

  constructor(server: Server, wake: Wake) {
    this.#server = server;
    this.#wake = wake;
  }

  async relay(queue: string, limit: number): Promise<RelayReply> {
    const { delivered, more } = await this.#relay(queue, limit, (name, values) => this.#server.call(name, values));
    return { delivered, more };
  }

  /** Delivers the messages that a call of this store has written. Never rejects: the messages stay until they are delivered. */
  async after(...queues: string[]): Promise<void> {
    await within(WAIT_MS, this.#follow(queues));
  }

  /** A delivery may cause further messages: the removal of a child removes its own children. */
  async #follow(queues: string[]): Promise<void> {
    for (let senders = queues; senders.length > 0; ) {
      senders = [...new Set((await Promise.all(senders.map((queue) => this.#share(queue)))).flat())];
    }
  }

  /** A delivery that has begun may have passed the messages of this call, so the call waits for the next one. */
  #share(queue: string): Promise<string[]> {
    let next = this.#next.get(queue);
    if (next === undefined) {
      next = this.#start(queue);
      this.#next.set(queue, next);
    }
    return next;
  }

  async #start(queue: string): Promise<string[]> {
    await this.#running.get(queue);
    this.#next.delete(queue);
    const running = this.#deliver(queue).catch(() => []);
    this.#running.set(queue, running);
    const senders = await running;
    if (this.#running.get(queue) === running) this.#running.delete(queue);
    return senders;
  }

  /** Goes on until the messages that were there at the beginning are gone, by this process or by another one. */
  async #deliver(queue: string): Promise<string[]> {
    const run: Run = (name, values) => this.#server.ask(name, values, KEEPING_MS);
    const senders = new Set<string>();
    let newest: number | undefined;
    for (let idle = 0; idle < IDLE_ROUNDS; ) {
      const reply = await this.#relay(queue, AT_ONCE, run);
      if (reply.sent) for (const sender of reply.queues) senders.add(sender);
      newest ??= reply.newest ?? 0;
      if (reply.oldest === null || reply.oldest > newest) break;
      if (reply.delivered > 0) continue;
      idle += 1;
      await sleep(PAUSE_MS);
    }
    return [...senders];
  }

  async #relay(queue: string, limit: number, run: Run): Promise<Relayed> {
    const reply = await run('relay', { name: queue, limit: Math.min(limit, 2 ** 31 - 1) });
    for (const changed of reply.queues) this.#wake.signal(changed, 'jobs');
    return reply;
  }
}
