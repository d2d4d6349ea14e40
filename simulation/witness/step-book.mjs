// The steps and signals of jobs, from the replies of the store, compared with what it shows and with what handlers get: a recorded step
// stays and does not run again, a signal that was acknowledged is found and wakes its job, and a sleep is not over before its time.

export class StepBook {
  /** Set by a run with steps. False: nothing is read. */
  isKept = false;
  /** By job: the records by their stored names, in the order of the store, with the time of each. */
  #records = new Map();
  /** By job: until when it sleeps, and the signal that may wake it before. */
  #sleeps = new Map();
  /** By job and name: until when a signal is in time. */
  #due = new Map();
  /** By job and name: the key of the first run. */
  #keys = new Map();
  /** Jobs that a signal must have woken. */
  #woken = new Set();
  #world;
  #time;
  #store;
  #jobs;
  #queue;
  /** What handlers hold may be lost with the store before. */
  #hasTakenOver = false;

  constructor({ world, time, store, queue, jobs }) {
    this.#world = world;
    this.#time = time;
    this.#store = store;
    this.#queue = queue;
    this.#jobs = jobs;
  }

  takeOver() {
    this.#hasTakenOver = true;
    this.#woken.clear();
  }

  /** An owner has recorded a step, or a process has sent a signal. */
  written({ kind, jobId, token, name, value: sent }, { status, value }) {
    if (kind !== 'step' || status !== 'done') return;
    const recorded = this.#record(jobId, name, sent);
    if (value !== recorded) this.#violate('a recorded step stays', jobId, `${name} is ${recorded}, and a write got ${value}`);
    if (token !== undefined) return;
    if (this.#sleeps.get(jobId)?.awaits !== name) return;
    this.#sleeps.delete(jobId);
    this.#woken.add(jobId);
  }

  /** The run of an owner has ended with a delay. */
  delayed({ jobId, delayMs, step, awaits }) {
    if (step === undefined) return;
    this.#record(jobId, step.name, step.value);
    const until = this.#time.after(delayMs);
    if (awaits !== undefined) this.#due.set(`${jobId} ${awaits}`, until);
    // A cancelled job has failed instead.
    if (!this.#jobs.finished.has(jobId)) this.#sleeps.set(jobId, { until, awaits });
  }

  granted(id) {
    const sleep = this.#sleeps.get(id);
    this.#sleeps.delete(id);
    if (sleep === undefined || sleep.until <= this.#time.now()) return;
    const early = Math.round(sleep.until - this.#time.now());
    this.#violate('no sleep ends early', id, `${id} was granted ${early} ms before its sleep was over`);
  }

  /** The job was retried by hand, without the records from this one on. */
  retried(id, fromStep) {
    this.#sleeps.delete(id);
    // A retry ends what the job waited for.
    for (const [wait, due] of this.#due) if (wait.startsWith(`${id} `)) this.#due.set(wait, Math.min(due, this.#time.now()));
    const records = this.#records.get(id);
    if (fromStep === undefined || records === undefined) return;
    const names = [...records.keys()];
    for (const name of names.slice(names.indexOf(fromStep))) records.delete(name);
  }

  /** The function of a step begins. */
  began({ id }, token, name, key) {
    const isOwner = this.#jobs.owners.get(id)?.token === token;
    if (isOwner && this.#records.get(id)?.has(`s:${name}`))
      this.#violate('a recorded step does not run again', id, `${token} runs ${name} of ${id}, which is recorded`);
    const known = this.#keys.get(`${id} ${name}`) ?? key;
    this.#keys.set(`${id} ${name}`, known);
    if (known !== key) this.#violate('a step has one key', id, `${name} of ${id} had the key ${known}, and has ${key}`);
  }

  /** A handler has got this from its step. */
  stepped({ id }, name, value) {
    const recorded = this.#valueOf(id, `s:${name}`);
    if (this.#hasTakenOver || recorded === JSON.stringify(value)) return;
    this.#violate('a recorded step stays', id, `${name} of ${id} is ${recorded}, and its handler got ${JSON.stringify(value)}`);
  }

  /** A handler has got this from waitFor; undefined: no signal came in time. */
  waited({ id }, name, data) {
    const signal = this.#records.get(id)?.get(`g:${name}`);
    const due = this.#due.get(`${id} g:${name}`) ?? Number.POSITIVE_INFINITY;
    const isRight = data === undefined ? signal === undefined || signal.at >= due : signal?.value === JSON.stringify(data);
    if (this.#hasTakenOver || isRight) return;
    const text = `${id} waited for ${name} and got ${JSON.stringify(data)}, and the signal is ${signal?.value}`;
    this.#violate('a signal is found', id, text);
  }

  /** Call it after every call that may have changed jobs. */
  async check() {
    if (!this.isKept) return;
    for (const id of this.#woken) {
      const [job] = (await this.#store.jobs(this.#queue, [id])).jobs;
      if (job?.state === 'delayed')
        this.#violate('a signal wakes its job', id, `the signal of ${id} is there, and ${id} is delayed`);
    }
    this.#woken.clear();
    for (const [id, records] of this.#records) await this.#compare(id, records);
  }

  async #compare(id, records) {
    const { steps } = await this.#store.jobs(this.#queue, { stepsOf: id });
    const shown = new Map(steps.map(({ name, value }) => [name, value]));
    for (const [name, { value }] of records) {
      if (shown.get(name) !== value)
        this.#violate('a recorded step stays', id, `${name} of ${id} is ${value}, and the store shows ${shown.get(name)}`);
    }
    const foreign = steps.find(({ name }) => !records.has(name));
    if (foreign !== undefined)
      this.#violate('no stale write', id, `the store shows ${foreign.name} of ${id}, which no owner has recorded`);
    if ([...records.keys()].join() !== steps.map(({ name }) => name).join())
      this.#violate('a recorded step stays', id, `the steps of ${id} are in another order`);
  }

  /** Returns the value that is recorded now. */
  #record(id, name, value) {
    const records = this.#records.get(id) ?? new Map();
    this.#records.set(id, records);
    if (!records.has(name)) records.set(name, { value, at: this.#time.now() });
    return records.get(name).value;
  }

  #valueOf(id, name) {
    return this.#records.get(id)?.get(name)?.value;
  }

  #violate(invariant, job, text) {
    this.#world.violate({ invariant, text, job });
  }
}
