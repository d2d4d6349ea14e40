// Shared by the tests of families on Redis: steps of a family that a test takes one by one, as if a process ended between them.
import type { Cluster, Redis } from 'ioredis';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import type { Argument } from '../../../src/store/redis/driver/driver.js';
import { type Runner, tagOf } from '../../../src/store/redis/driver/runner.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import { settle } from '../../../src/store/redis/settle.js';
import type { Engine } from '../../../src/store/redis/driver/engine.js';
import { completed } from '../../../src/testing/conformance/samples.js';
import { newJob, newSession } from './support.js';

export class Family {
  readonly #run: Runner;
  #seq = 0;

  constructor(
    readonly store: RedisStore,
    readonly client: Redis | Cluster,
    readonly prefix = 'holdfast',
    readonly parents = 'parents',
    readonly kids = 'kids',
  ) {
    this.#run = (name, queue, args) => client.eval(script(name).text, 1, tagOf(prefix, queue), ...args) as Promise<unknown>;
  }

  async open(): Promise<this> {
    for (const queue of [this.parents, this.kids]) await this.store.openSession(newSession({ queue, id: `s-${queue}` }));
    return this;
  }

  /** Runs a script as a process does that ends right after it. */
  run(name: Parameters<Runner>[0], queue: string, ...args: Argument[]): Promise<unknown> {
    return this.#run(name, queue, args);
  }

  child(id: string, parent = 'parent'): Partial<NewJob> {
    return { id, queue: this.kids, parents: [{ queue: this.parents, id: parent }] };
  }

  async add(...jobs: Partial<NewJob>[]): Promise<void> {
    await this.store.add(this.parents, jobs.map(newJob), { caller: 'p', seq: ++this.#seq });
  }

  /** Adds a parent with these children. */
  addAll(...children: string[]): Promise<void> {
    return this.add({ id: 'parent', waitsForChildren: true }, ...children.map((id) => this.child(id)));
  }

  async claim(id: string, queue = this.kids): Promise<ClaimedJob> {
    const { jobs } = await this.store.claim(queue, { session: `s-${queue}`, seq: ++this.#seq, count: 1, jobIds: [id] });
    if (jobs[0] === undefined) throw new Error(`${id} cannot be claimed`);
    return jobs[0];
  }

  /** Completes a child through the store, which delivers the message. */
  async complete(id: string): Promise<void> {
    await this.store.settle(this.kids, [completed(await this.claim(id))]);
  }

  /** Settles a child as a process does that ends before it delivers the message. */
  async settleAndDie(id: string, outcomeOf: (job: ClaimedJob) => Outcome = completed): Promise<void> {
    const engine = { run: this.#run, relays: { after: async () => undefined, writeNear: () => undefined } } as unknown as Engine;
    await settle(engine, this.kids, [outcomeOf(await this.claim(id))], undefined, undefined);
  }

  /** The messages of the kids' queue to the parents' queue: number and text, one after the other. */
  async messages(): Promise<string[]> {
    return (await this.run('outgoing', this.kids, this.parents, '', 1_000)) as string[];
  }

  /** Delivers messages, and ends before it deletes them. Returns how many were taken. */
  async deliverAndDie(messages: string[]): Promise<number> {
    return ((await this.run('deliver', this.parents, this.parents, this.kids, '', 1_000, ...messages)) as [number])[0];
  }

  async state(id = 'parent', queue = this.parents): Promise<string> {
    return (await this.store.jobs(queue, [id])).jobs[0]?.state ?? 'missing';
  }

  async counts(id = 'parent'): Promise<string> {
    const { counts } = await this.store.children(this.parents, id, { states: [], limit: 1 });
    return `${counts.pending} pending, ${counts.processed} processed, ${counts.failed} failed, ${counts.ignored} ignored`;
  }

  /** How often the parent went from waiting for children to waiting. */
  async releases(id = 'parent'): Promise<number> {
    const { events } = await this.store.events(this.parents, 0, 10_000);
    return events.filter(({ name, jobId, prev }) => name === 'waiting' && jobId === id && prev === 'waiting-children').length;
  }

  /** Relays for both queues until nothing is left. */
  async relay(store = this.store): Promise<void> {
    for (let idle = false; !idle; ) {
      const replies = [await store.relay(this.parents, 100), await store.relay(this.kids, 100)];
      idle = replies.every(({ delivered, more }) => delivered === 0 && !more);
    }
  }
}
