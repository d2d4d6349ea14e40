// All processes of a run, through all their lives.
import { Program } from './program.mjs';
import { QUEUE } from './queues.mjs';
import { SimProcess } from './sim-process.mjs';

class Member {
  process;
  program;
  /** It closes in order, and comes back afterwards. */
  leaves = false;
  #lives = 0;
  #own;
  #crew;

  constructor(own, crew) {
    this.#own = own;
    this.#crew = crew;
    this.start();
  }

  start() {
    const { context, parts } = this.#crew;
    this.#lives += 1;
    this.leaves = false;
    this.process = new SimProcess(this.#lives === 1 ? this.#own.name : `${this.#own.name}${this.#lives}`, context);
    this.program = new Program({ process: this.process, own: this.#own, ...parts });
  }

  startAgain(ms) {
    const { world, nemesis } = this.#crew.context;
    nemesis.arrive(world.now + ms, () => this.start());
  }

  leave(restartMs) {
    const { process, program } = this;
    this.leaves = true;
    process.loop.arrive(process.world.now, async () => {
      await Promise.all([program.worker?.close(), program.childWorker?.close(), program.leader?.close(), program.flows?.close()]);
      await program.queue?.close();
      process.crash();
      this.startAgain(restartMs);
    });
  }

  /** Nothing of it is still to come. */
  get isAtRest() {
    return !this.process.isDead && !this.leaves && this.program.pending === 0;
  }
}

export class Crew {
  members;
  server;
  context;
  parts;

  constructor({ context, parts }) {
    this.context = context;
    this.parts = { ...parts, runs: new Map() };
    this.server = context.server;
    this.members = parts.plan.processes.map((own) => new Member(own, this));
  }

  /** An operator, who is next to the store. */
  revoke(index) {
    const { jobs } = this.parts.witness.books;
    const id = [...jobs.acknowledged][index];
    if (id !== undefined) this.#change(jobs.queues.get(id) ?? QUEUE, id, { kind: 'revoke', reason: 'an operator said so' });
  }

  /** The same operator. */
  cancel(id) {
    this.#change(QUEUE, id, { kind: 'cancel', reason: 'cancelled: an operator said so' });
  }

  #change(queue, id, change) {
    const { world } = this.context;
    const operator = { name: 'operator', isDead: false };
    const answer = () => undefined;
    this.server.receive(world.now, {
      verb: 'change',
      args: [queue, [id], change],
      process: operator,
      times: 1,
      answer,
    });
  }

  heal() {
    for (const { process } of this.members) for (const link of process.links) link.heal();
  }

  /** Why the run cannot end yet; undefined when it can. */
  get unrest() {
    const { ledger, schedules } = this.parts.witness.books;
    if (schedules.open.length > 0) return { text: `${schedules.open.join(', ')} have not ended` };
    if (ledger.open.length > 0)
      return { text: `${ledger.open.join(', ')} have neither completed nor failed`, job: ledger.open[0] };
    for (const { isAtRest, process, program } of this.members) {
      if (!isAtRest) return { text: `${process.name} has ${program.pending} adds or locks that come to no end` };
    }
    const standing = this.members.filter(({ program }) => program.leader !== undefined);
    if (standing.length > 0 && !standing.some(({ program }) => program.leader.isLeader)) return { text: 'nobody leads' };
    return undefined;
  }
}
