// Which job owns each deduplication id, and which draft follows it, from the replies of the store; compared with what the store shows.

export class UniqueBook {
  #entries = new Map();
  #world;
  #store;
  #queue;
  #jobs;

  constructor({ world, store, queue, jobs }) {
    this.#world = world;
    this.#store = store;
    this.#queue = queue;
    this.#jobs = jobs;
  }

  /** Call it with every add that was not a repetition. */
  added(jobs, replies) {
    jobs.forEach(({ deduplication, data }, index) => {
      if (deduplication !== undefined) this.#added(deduplication, data, replies[index]);
    });
  }

  #added({ id, keepLastIfActive }, data, { id: jobId, status }) {
    const entry = this.#entries.get(id);
    const isTaken = entry !== undefined && !this.#jobs.finished.has(entry.owner);
    if (status === 'added') {
      if (isTaken) this.#violate('one owner per id', jobId, `${jobId} was added under ${id}, which ${entry.owner} owns`);
      this.#entries.set(id, { owner: jobId });
      return;
    }
    if (!isTaken || entry.owner !== jobId) {
      const owner = isTaken ? entry.owner : 'no job';
      this.#violate('one owner per id', jobId, `an add under ${id} was answered with ${jobId}, and ${owner} owns it`);
    } else if (keepLastIfActive && this.#jobs.owners.has(jobId)) entry.draft = data;
  }

  /** Call it after every call that may have changed jobs. */
  async check() {
    for (const [id, { owner, draft }] of [...this.#entries]) {
      const { deduplication } = await this.#store.status(this.#queue, { deduplication: [id] });
      const seen = deduplication[0];
      if (!this.#jobs.finished.has(owner)) {
        if (seen !== owner) this.#violate('one owner per id', owner, `${owner} owns ${id}, and the store shows ${seen}`);
        continue;
      }
      this.#entries.delete(id);
      if (draft !== undefined) await this.#follows(id, owner, draft, seen);
      else if (seen !== undefined) this.#violate('one owner per id', seen, `${owner} has ended, and ${seen} owns ${id}`);
    }
  }

  /** The owner has ended: the draft must be the next one. */
  async #follows(id, owner, draft, seen) {
    const [job] = seen === undefined ? [] : (await this.#store.jobs(this.#queue, [seen])).jobs;
    if (seen === owner || job?.data !== draft) {
      const text = `${owner} has ended, and the last draft under ${id} is not the job that follows it (${seen ?? 'no job'})`;
      return this.#violate('the last draft runs', owner, text);
    }
    this.#jobs.known.add(seen);
    this.#entries.set(id, { owner: seen });
  }

  #violate(invariant, job, text) {
    this.#world.violate({ invariant, text, job });
  }
}
