// The books of one copy of the store: every request and reply goes past them, and what follows from it for sessions, jobs and names is written
// down and compared with what anybody can read from the store. They never read the inside of the store, and never change anything.
import { FamilyBook } from './family-book.mjs';
import { FenceBook } from './fence-book.mjs';
import { JobBook } from './job-book.mjs';
import { Ledger } from './ledger.mjs';
import { NameBook } from './name-book.mjs';
import { RateBook } from './rate-book.mjs';
import { ScheduleBook } from './schedule-book.mjs';
import { SessionBook } from './session-book.mjs';
import { StepBook } from './step-book.mjs';
import { UniqueBook } from './unique-book.mjs';

const CHANGES_JOBS = new Set([
  'add',
  'claim',
  'settle',
  'closeSessions',
  'sweep',
  'extend',
  'change',
  'write',
  'schedule',
  'relay',
  'deliver',
]);
/** A look that found nothing has changed nothing, and most look in vain. */
const hasChangedJobs = (verb, reply) =>
  CHANGES_JOBS.has(verb) &&
  reply?.jobs?.length !== 0 &&
  (verb !== 'relay' || reply?.delivered !== 0) &&
  (verb !== 'sweep' || (reply?.stalled.length ?? 1) + (reply?.failed.length ?? 1) > 0);
const DEFAULT_GRACE_MS = 2000;

export class Books {
  jobs;
  names;
  unique;
  rates;
  schedules;
  families;
  steps;
  ledger;
  fences;
  #isInUse;
  #world;
  #store;
  #queue;
  #history;
  #sessions;

  /** `onJob` and `onName` hear of every grant, `onCancel` of every run whose job was cancelled. A replica's books are kept and not judged, until it takes over. */
  constructor({ world, store, time, queue, history, onJob, onName, onCancel, isReplica }) {
    this.#isInUse = !isReplica;
    // What the world is to the books: of a replica, nobody wants to hear.
    this.#world = { violate: (violation) => this.#isInUse && world.violate(violation) };
    this.#history = { note: (...line) => this.#isInUse && history.note(...line) };
    this.#store = store;
    this.#queue = queue;
    this.#sessions = new SessionBook(this.#world, time);
    this.fences = new FenceBook(this.#world, queue);
    const shared = { world: this.#world, time, history: this.#history, sessions: this.#sessions, fences: this.fences };
    this.jobs = new JobBook({
      ...shared,
      onGrant: (...grant) => this.#isInUse && onJob(...grant),
      onCancel: (token) => this.#isInUse && onCancel(token),
    });
    this.names = new NameBook({ ...shared, onGrant: (...grant) => this.#isInUse && onName(...grant) });
    this.unique = new UniqueBook({ world: this.#world, store, queue, jobs: this.jobs });
    this.rates = new RateBook(shared);
    this.schedules = new ScheduleBook({ world: this.#world, time, store, queue });
    this.families = new FamilyBook({ world: this.#world, now: () => world.now, store, jobs: this.jobs });
    this.steps = new StepBook({ world: this.#world, time, store, queue, jobs: this.jobs });
    this.ledger = new Ledger({ world: this.#world, store, queue, jobs: this.jobs });
  }

  /** The replica has become the store, and what had not reached it is lost. Fences go on growing all the same. */
  async takeOver(before) {
    this.#isInUse = true;
    before.#isInUse = false;
    this.jobs.takeOver(before.jobs);
    this.families.takeOver(before.families);
    this.steps.takeOver();
    this.fences.takeOver(before.fences);
    await this.ledger.check();
  }

  processOf(session) {
    return this.#sessions.get(session)?.process;
  }

  holderOf(name) {
    return this.processOf(this.names.holders.get(name)?.session);
  }

  graceOf(session) {
    return this.#sessions.get(session)?.graceMs ?? DEFAULT_GRACE_MS;
  }

  /** On the clock of the store. */
  endOf(session) {
    return this.#sessions.get(session)?.expiresAt;
  }

  /** A hint has changed when the session expires. */
  shortened(session, ms) {
    this.#history.note('store', `${session} is left ${Math.round(ms)} ms`, { sessions: [session] });
    this.#sessions.shortened(session, ms);
  }

  /** Called with each request before the store sees it; answers what to call with its answer. */
  before(verb, args, process) {
    const guarded = this.#isInUse ? this.#guarded(verb, args) : [];
    const read = guarded.length > 0 ? this.#store.jobs(args[0], guarded) : { jobs: [] };
    return async ({ error, reply }) => {
      if (error !== undefined) this.#history.note('store', `${verb} of ${process.name} is refused: ${error.message}`);
      const untouched = error === undefined ? this.#after(verb, args, reply, process) : guarded;
      if (hasChangedJobs(verb, reply)) await this.unique.check();
      if (hasChangedJobs(verb, reply) || verb === 'probe') await this.schedules.check();
      if (hasChangedJobs(verb, reply) || this.families.isQuiet) await this.families.check();
      if (!this.#isInUse) return;
      if (untouched.length > 0) await this.#compare(args[0], untouched, guarded, (await read).jobs);
      if (hasChangedJobs(verb, reply)) await this.steps.check();
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
        this.#swept(args[0], reply, process);
        break;
      case 'add':
        if (jobs.added(args[0], args[1], args[2], reply)) break;
        this.unique.added(args[1], reply);
        this.families.added(args[0], args[1], reply);
        break;
      case 'claim':
        if (args[0] === this.#queue) this.rates.claimed(args[1], reply);
        this.#claimed(args[0], args[1], reply);
        break;
      case 'schedule':
        this.schedules.changed(args[1], reply);
        break;
      case 'settle': {
        const [, outcomes, call, request] = args;
        const untouched = jobs.settled(outcomes, call, reply.results);
        for (const outcome of outcomes)
          if (outcome.kind === 'delay' && !untouched.includes(outcome.jobId)) this.steps.delayed(outcome);
        if (request !== undefined && args[0] === this.#queue) this.rates.claimed(request, reply.claimed);
        if (request !== undefined) this.#claimed(args[0], request, reply.claimed);
        // What the same call has claimed has changed, rightly.
        return untouched.filter((id) => !reply.claimed?.jobs.some((job) => job.id === id));
      }
      case 'write':
        return args[1].flatMap((write, index) => {
          const isOwner = jobs.written(write, reply[index]);
          if (isOwner) this.steps.written(write, reply[index]);
          return isOwner ? [] : [write.jobId];
        });
      case 'extend':
        return args[1].flatMap((extension, index) => (jobs.extended(extension, reply[index]) ? [] : [extension.jobId]));
      case 'change':
        this.#changed(args[1], args[2], reply);
        break;
      case 'acquire':
        args[1].forEach((wish, index) => names.asked(wish, reply[index]));
        break;
      case 'letGo':
        args[1].forEach((ref, index) => names.letGo(ref, reply[index] === 'done'));
        break;
    }
    return [];
  }

  #claimed(queue, request, reply) {
    const before = new Set(this.jobs.owners.keys());
    this.jobs.claimed(queue, request, reply);
    for (const { id } of reply.jobs) if (!before.has(id)) this.steps.granted(id);
    this.schedules.claimed(reply.jobs);
    this.families.claimed(reply.jobs);
  }

  #changed(target, change, { changed }) {
    if (change.kind === 'revoke') this.jobs.revoked(target, changed);
    if (change.kind === 'cancel') this.jobs.cancelled(target, changed);
    if (change.kind !== 'retry') return;
    for (const id of changed) {
      this.jobs.retried(id);
      this.steps.retried(id, change.fromStep);
    }
  }

  #renewed(renewal, reply) {
    this.#sessions.renewed(renewal, reply);
    const about = { sessions: [renewal.id], ...(reply.alive && { routine: renewal.id }) };
    this.#history.note('store', `${renewal.id} is renewed: ${reply.alive ? 'alive' : 'dead'}`, about);
  }

  #closed(id, how) {
    this.#history.note('store', `${id} is ${how}`, { sessions: [id] });
    this.#sessions.end(id);
    this.jobs.closed(id, how);
    this.names.sessionEnded(id);
  }

  #swept(queue, reply, process) {
    // Before the sessions are ended: whoever was alive until now must not have been swept.
    this.jobs.swept(reply);
    for (const { id } of this.#sessions.reap(queue)) {
      this.#history.note('store', `${id} has expired and is reaped by ${process.name}`, { sessions: [id] });
      this.names.sessionEnded(id);
    }
    if (!reply.more && queue === this.#queue)
      for (const [, { session }] of this.names.holders) if (!this.#sessions.isAlive(session)) this.names.sessionEnded(session);
  }

  async #compare(queue, ids, guarded, before) {
    const { jobs: after } = await this.#store.jobs(queue, guarded);
    for (const id of ids) {
      const index = guarded.indexOf(id);
      if (index === -1 || isSame(before[index], after[index])) continue;
      const text = `a write by somebody who did not own ${id} changed it from ${JSON.stringify(before[index])} to ${JSON.stringify(after[index])}`;
      this.#world.violate({ invariant: 'no stale write', text, job: id });
    }
  }
}

/** But for a delay that has passed: any claim finds out. */
function isSame(before, after) {
  const isDue = before?.state === 'delayed' && after?.state === 'waiting';
  return JSON.stringify(isDue ? { ...before, state: after.state, delay: after.delay } : before) === JSON.stringify(after);
}
