// Sees every request and reply at the store, what handlers, holders and leaders believe, and what people are told, and says when one of the
// invariants does not hold. It must never change anything, and never reads the inside of the store.
import { FenceBook } from './fence-book.mjs';
import { JobBook } from './job-book.mjs';
import { Ledger } from './ledger.mjs';
import { NameBook } from './name-book.mjs';
import { SessionBook } from './session-book.mjs';
import { Trust } from './trust.mjs';

const CHANGES_JOBS = new Set(['add', 'claim', 'settle', 'closeSessions', 'sweep', 'extend', 'revoke', 'write']);
/** A look that found nothing has changed nothing, and most look in vain. */
const hasChangedJobs = (verb, reply) =>
  CHANGES_JOBS.has(verb) &&
  reply?.jobs?.length !== 0 &&
  (verb !== 'sweep' || (reply?.stalled.length ?? 1) + (reply?.failed.length ?? 1) > 0);
const DEFAULT_GRACE_MS = 2000;
const LEADER_LOCK = 'holdfast:leader';

export class Witness {
  jobs;
  names;
  trust;
  ledger;
  #world;
  #store;
  #queue;
  #history;
  #sessions;

  constructor({ world, store, queue, history, random }) {
    this.#world = world;
    this.#store = store;
    this.#queue = queue;
    this.#history = history;
    this.trust = new Trust(world, history, random);
    this.#sessions = new SessionBook(world);
    const books = { world, history, sessions: this.#sessions, fences: new FenceBook(world) };
    // A job that an operator took away runs on until its session hears of it.
    const onJob = (id, token) => this.trust.granted(id, token, (run) => this.jobs.isRevoked(run.token));
    // A leader's next term is its own: it is asked about leading, not about one term.
    const onName = (name, token) =>
      this.trust.granted(name, token, ({ process }) => name === LEADER_LOCK && process === this.#holder(name));
    this.jobs = new JobBook({ ...books, onGrant: onJob });
    this.names = new NameBook({ ...books, onGrant: onName });
    this.ledger = new Ledger({ world, store, queue, jobs: this.jobs });
  }

  #holder(name) {
    return this.processOf(this.names.holders.get(name)?.session);
  }

  processOf(session) {
    return this.#sessions.get(session)?.process;
  }

  graceOf(session) {
    return this.#sessions.get(session)?.graceMs ?? DEFAULT_GRACE_MS;
  }

  /** A hint has changed when the session expires. */
  shortened(session, ms) {
    this.#history.note('store', `${session} is left ${Math.round(ms)} ms`, { sessions: [session] });
    this.#sessions.shortened(session, ms);
  }

  /** A handler runs; answers how to tell that it has ended. */
  runs(job, process) {
    const { lock, id } = job;
    const what = { job: id };
    this.#history.note(process.name, `runs ${id}`, { jobs: [id] });
    // One that an operator has taken away meanwhile hears of it with its next renewal.
    const current = this.jobs.isRevoked(lock.token) ? undefined : this.jobs.owners.get(id)?.token;
    return this.trust.began({ what, token: lock.token, process, isHeld: () => lock.held }, current);
  }

  /** Somebody works under a name. */
  holds(lock, process) {
    const what = { name: lock.name };
    const current = this.names.holders.get(lock.name)?.token;
    return this.trust.began({ what, token: lock.token, process, isHeld: () => lock.held }, current);
  }

  /** Somebody stands for election for as long as it lives. */
  stands(leader, process) {
    const isHeld = () => this.#holder(LEADER_LOCK) !== process && leader.isLeader;
    this.trust.began({ what: { name: LEADER_LOCK }, token: undefined, process, isHeld }, undefined);
  }

  toldCompleted(process, { id }, token) {
    const finish = this.jobs.finished.get(id);
    if (finish?.kind === 'completed' && finish.token === token) return;
    const text = `${process.name} was told that ${id} is completed by ${token}, and it is not`;
    this.#world.violate({ invariant: 'told only what is true', text, job: id });
  }

  /** More handlers run in a process than there are slots. */
  tooMany(process, running, { id }) {
    this.#world.violate({ invariant: 'slots are kept', text: `${process.name} runs ${running} jobs at once`, job: id });
  }

  /** Called with each request before the store sees it; answers what to call with its answer. */
  before(verb, args, process) {
    const guarded = this.#guarded(verb, args);
    const records = guarded.length > 0 ? this.#store.jobs(this.#queue, guarded) : [];
    return async ({ error, reply }) => {
      if (error !== undefined) this.#history.note('store', `${verb} of ${process.name} is refused: ${error.message}`);
      const untouched = error === undefined ? this.#after(verb, args, reply, process) : guarded;
      if (untouched.length > 0) await this.#compare(untouched, guarded, await records);
      if (hasChangedJobs(verb, reply)) await this.ledger.check();
    };
  }

  /** Jobs that somebody writes to as their owner. */
  #guarded(verb, args) {
    if (verb !== 'settle' && verb !== 'write' && verb !== 'extend') return [];
    return [...new Set(args[1].filter(({ token }) => token !== undefined).map(({ jobId }) => jobId))];
  }

  /** Answers the jobs that must be as they were. */
  #after(verb, args, reply, process) {
    const { jobs, names } = this;
    switch (verb) {
      case 'openSession':
        this.#sessions.opened(args[0], process);
        this.#history.note('store', `${args[0].id} is opened by ${process.name}`, { sessions: [args[0].id] });
        break;
      case 'renew':
        args[0].forEach((renewal, index) => this.#renewed(renewal, reply[index]));
        break;
      case 'closeSessions':
        for (const { id } of args[0]) this.#closed(id, args[1]);
        break;
      case 'sweep':
        this.#swept(reply, process);
        break;
      case 'add':
        jobs.added(args[2], reply);
        break;
      case 'claim':
        jobs.claimed(args[1], reply);
        break;
      case 'settle': {
        const [, outcomes, call, request] = args;
        const untouched = jobs.settled(outcomes, call, reply.results);
        if (request !== undefined) jobs.claimed(request, reply.claimed);
        // What the same call has claimed has changed, rightly.
        return untouched.filter((id) => !reply.claimed?.jobs.some((job) => job.id === id));
      }
      case 'write':
        return args[1].flatMap((write, index) => (jobs.written(write, reply[index]) ? [] : [write.jobId]));
      case 'extend':
        return args[1].flatMap((extension, index) => (jobs.extended(extension, reply[index]) ? [] : [extension.jobId]));
      case 'revoke':
        jobs.revoked(args[1], reply);
        break;
      case 'acquire':
        args[1].forEach((wish, index) => names.asked(wish, reply[index]));
        break;
      case 'letGo':
        args[1].forEach((ref, index) => names.letGo(ref, reply[index]));
        break;
    }
    return [];
  }

  #renewed(renewal, reply) {
    this.#sessions.renewed(renewal, reply);
    const about = { sessions: [renewal.id], ...(reply.alive && { routine: renewal.id }) };
    this.#history.note('store', `${renewal.id} is renewed: ${reply.alive ? 'alive' : 'dead'}`, about);
  }

  #closed(id, charged) {
    this.#history.note('store', `${id} is closed${charged ? ', charged' : ''}`, { sessions: [id] });
    this.#sessions.end(id);
    this.jobs.closed(id, charged);
    this.names.sessionEnded(id);
  }

  #swept(reply, process) {
    // Before the sessions are ended: whoever was alive until now must not have been swept.
    this.jobs.swept(reply);
    for (const { id } of this.#sessions.reap()) {
      this.#history.note('store', `${id} has expired and is reaped by ${process.name}`, { sessions: [id] });
      this.names.sessionEnded(id);
    }
    if (!reply.more)
      for (const [, { session }] of this.names.holders) if (!this.#sessions.isAlive(session)) this.names.sessionEnded(session);
  }

  async #compare(ids, guarded, before) {
    const after = await this.#store.jobs(this.#queue, guarded);
    for (const id of ids) {
      const index = guarded.indexOf(id);
      if (index === -1 || JSON.stringify(before[index]) === JSON.stringify(after[index])) continue;
      const text = `a write by somebody who did not own ${id} changed it from ${JSON.stringify(before[index])} to ${JSON.stringify(after[index])}`;
      this.#world.violate({ invariant: 'no stale write', text, job: id });
    }
  }
}
