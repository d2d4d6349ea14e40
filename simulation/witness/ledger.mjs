// The store as anybody can read it, compared with what its replies have told: every job in exactly one state, under the lock that was
// granted, with the stalls that were counted; lists and counts agree; nothing that was acknowledged is gone.

const LISTS = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed', 'waiting-children'];
const EVERYTHING = { lists: LISTS, start: 0, end: -1, asc: true };

export class Ledger {
  /** Jobs that have neither completed nor failed. */
  open = [];
  /** The queues that are read. */
  queues;
  #world;
  #store;
  #jobs;

  constructor({ world, store, queue, jobs }) {
    this.#world = world;
    this.#store = store;
    this.queues = [queue];
    this.#jobs = jobs;
  }

  async check() {
    const seen = new Map();
    for (const queue of this.queues) await this.#checkQueue(queue, seen);
    // Of two servers: a job may be on its way from one to the other.
    const underWay = this.#store.underWay?.() ?? new Set();
    for (const id of this.#jobs.acknowledged) {
      if (!seen.has(id) && !this.#jobs.removed.has(id) && !underWay.has(id))
        this.#violate('nothing acknowledged is lost', id, `${id} was acknowledged, and is gone`);
    }
    for (const [id, { token, fence, session }] of this.#jobs.owners) {
      const queue = this.#jobs.queues.get(id) ?? this.queues[0];
      const lock = (await this.#store.locks(queue, { jobIds: [id] }))[0];
      if (lock?.token === token && lock.fence === fence && lock.session === session) continue;
      this.#violate(
        'one lock per job',
        id,
        `${id} was granted to ${session} (${token}), the store shows ${lock?.token ?? 'no lock'}`,
      );
    }
    this.open = [...seen.values()].filter(({ state }) => state !== 'completed' && state !== 'failed').map(({ id }) => id);
  }

  async #checkQueue(queue, seen) {
    const { jobs: records } = await this.#store.jobs(queue, EVERYTHING);
    const { counts } = await this.#store.status(queue);
    const states = Object.fromEntries(LISTS.map((name) => [name, 0]));
    for (const record of records) {
      const other = seen.get(record.id);
      if (other !== undefined)
        this.#violate('one state per job', record.id, `${record.id} is ${other.state} and ${record.state}`);
      seen.set(record.id, record);
      states[record.state === 'waiting' && record.priority > 0 ? 'prioritized' : record.state] += 1;
      this.#checkJob(record);
    }
    for (const name of LISTS) {
      if ((counts[name] ?? 0) === states[name]) continue;
      this.#violate('counts add up', undefined, `${counts[name]} jobs are counted as ${name}, ${states[name]} are there`);
    }
  }

  #checkJob({ id, state, stalledCounter }) {
    const stalls = this.#jobs.stalls.get(id) ?? 0;
    if (stalledCounter !== stalls) {
      this.#violate('stalls are counted', id, `${id} stalled ${stalls} times, ${stalledCounter} are counted`);
    }
    const owned = this.#jobs.owners.has(id);
    const { kind: finish, isCancelled = false } = this.#jobs.finished.get(id) ?? {};
    const isFinished = state === 'completed' || state === 'failed';
    if (isCancelled && !isFinished)
      this.#violate('a cancelled job ends', id, `${id} was cancelled and its run has ended, and it is ${state}`);
    if (owned !== (state === 'active') || (isFinished ? finish !== state : finish !== undefined)) {
      const told = owned ? 'active' : (finish ?? 'neither owned nor finished');
      this.#violate('one state per job', id, `${id} is ${state}, and by all replies it is ${told}`);
    }
  }

  #violate(invariant, job, text) {
    this.#world.violate({ invariant, text, job });
  }
}
