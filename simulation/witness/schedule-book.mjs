// The schedules, from the replies of the store, compared with what it shows: each running one has one next job or is owing, its slots
// grow, and no slot runs twice. When the faults are over, a debt is soon cleared.

const ALL = { start: 0, end: -1, asc: true };
/** A debt is cleared within this time when nothing goes wrong any more. */
const CLEARED_MS = 2000;

export class ScheduleBook {
  /** Set by a run with schedules: when its last fault is over. Undefined: there are none, and nothing is read. */
  quietFrom;
  /** Schedules that are running or owing. */
  open = [];
  #lastSlots = new Map();
  /** Ids of jobs that were claimed. */
  #claimed = new Set();
  #owingSince = new Map();
  #world;
  #time;
  #store;
  #queue;

  constructor({ world, time, store, queue }) {
    this.#world = world;
    this.#time = time;
    this.#store = store;
    this.#queue = queue;
  }

  claimed(jobs) {
    for (const { id } of jobs) this.#claimed.add(id);
  }

  changed(changes, replies) {
    changes.forEach(({ id, kind, next }, index) => {
      const { status, record } = replies[index];
      if (status !== 'done' || next === undefined || record?.nextJobId !== next.job.id) return;
      // The job of a serial schedule that has started stays its next job, and a put adds none.
      if (kind === 'put' && record.serial && this.#claimed.has(next.job.id)) return;
      const last = this.#lastSlots.get(id) ?? 0;
      // A put may take the same slot again as long as its job has not started.
      if (kind === 'advance' ? next.at <= last : next.at < last)
        this.#violate('slots grow', next.job.id, `${id} got the slot ${next.at} after ${last}`);
      if (this.#claimed.has(next.job.id))
        this.#violate('no slot twice', next.job.id, `${next.job.id} was made again after it had been claimed`);
      this.#lastSlots.set(id, Math.max(last, next.at));
    });
  }

  /** Call it after every call that may have changed jobs. */
  async check() {
    if (this.quietFrom === undefined) return;
    const { schedules } = await this.#store.status(this.#queue, { schedules: ALL });
    this.open = schedules.records.filter(({ state }) => state === 'running' || state === 'owing').map(({ id }) => id);
    for (const record of schedules.records) await this.#checkOne(record);
  }

  async #checkOne({ id, state, serial, nextJobId }) {
    const now = this.#time.now();
    if (state !== 'owing') this.#owingSince.delete(id);
    else if (!this.#owingSince.has(id)) this.#owingSince.set(id, now);
    const since = Math.max(this.#owingSince.get(id) ?? now, this.quietFrom);
    if (now - since > CLEARED_MS)
      this.#violate('a schedule goes on', undefined, `${id} is owing for ${Math.round(now - since)} ms, and all faults are over`);
    if (state !== 'running') {
      if (nextJobId !== undefined) this.#violate('one next job or owing', nextJobId, `${id} is ${state} and has a next job`);
      return;
    }
    const [job] = nextJobId === undefined ? [] : (await this.#store.jobs(this.#queue, [nextJobId])).jobs;
    const isNext = job?.state === 'waiting' || job?.state === 'delayed' || (serial && job?.state === 'active');
    if (!isNext || (!serial && this.#claimed.has(nextJobId)))
      this.#violate('one next job or owing', nextJobId, `${id} is running, and its next job is ${job?.state ?? 'missing'}`);
  }

  #violate(invariant, job, text) {
    this.#world.violate({ invariant, text, job });
  }
}
