// Faults of one side alone: of the event loop's connection, or of the lock thread's. Both sides of a worker load
// fixtures/faulty-connection.mjs, and hear over a channel what is to go wrong.
import { randomUUID } from 'node:crypto';
import { BroadcastChannel } from 'node:worker_threads';
import type { Connection } from 'holdfast';
import type { StoreVerb } from 'holdfast/testing';
import { onTestFinished } from 'vitest';
import { type Moment, MomentLog } from '../wait/moments.js';
import { fixture } from '../processes/worker-process.js';
import type { Scene } from '../scenes/scene.js';

export type Side = 'loop' | 'thread';

export interface Rule {
  fault: 'fail' | 'drop-reply' | 'hold-reply' | 'hang';
  times?: number;
}

export class FaultySides {
  readonly connection: Connection;
  /** `opened`, `called`, `answered`, each with `side` and `verb`. */
  readonly log = new MomentLog();
  readonly #channel: BroadcastChannel;
  #orders = 0;

  constructor({ url }: Scene) {
    const channel = `faults-${randomUUID()}`;
    this.connection = { module: fixture('faulty-connection.mjs'), export: 'open', options: { url, channel } };
    this.#channel = new BroadcastChannel(channel);
    this.#channel.onmessage = (message) => {
      const { told, ...fields } = (message as unknown as { data: { told?: string } }).data;
      if (told !== undefined) this.log.happen(told, fields);
    };
    onTestFinished(() => this.#channel.close());
  }

  /** The thread has a connection of its own, and has renewed over it: from now on it is the one that renews. */
  async threadRenews(): Promise<void> {
    await this.answered('thread', 'renew');
  }

  /** From now on, calls of `verb` go wrong on that side. */
  strike(side: Side, verb: StoreVerb, rule: Rule): Promise<void> {
    return this.#order({ side, verb, rule });
  }

  /** All goes well again on that side, and what was held up is let go of. */
  heal(side: Side): Promise<void> {
    return this.#order({ side });
  }

  /** Lets go of the calls that were held up on that side; the next ones are held up again. */
  release(side: Side): Promise<void> {
    return this.#order({ side, release: true });
  }

  count(told: string, side: Side, verb: StoreVerb): number {
    return this.log.all(told, (moment) => moment['side'] === side && moment['verb'] === verb).length;
  }

  /** The next answer that a side gets, or the first one. */
  answered(side: Side, verb: StoreVerb, after = 0): Promise<Moment> {
    return this.log.moment('answered', ({ at, ...moment }) => moment['side'] === side && moment['verb'] === verb && at > after);
  }

  async #order(order: { side: Side; verb?: StoreVerb; rule?: Rule; release?: true }): Promise<void> {
    this.#orders += 1;
    const number = this.#orders;
    this.#channel.postMessage({ ...order, order: number });
    await this.log.moment('obeyed', (moment) => moment['order'] === number);
  }
}
