// What the simulated processes run: an application with a worker, a queue, a leader and named locks, written as users write theirs.
import { EPOCH_MS } from './host-clock.mjs';
import { CHILD_QUEUE, LETTER_QUEUE, QUEUE } from './queues.mjs';
import { CONNECTION } from './sim-process.mjs';

const ADD_TIMEOUT_MS = 6000;
/** So often a program sends a signal, a cancel or a retry that fails. */
const COMMAND_TRIES = 10;
/** Timers round to whole milliseconds. */
const TIMER_MS = 2;

export class Program {
  /** Adds and locks of it that have not come to an end. */
  pending = 0;
  worker;
  queue;
  leader;
  /** Only in a run with flows. */
  childWorker;
  flows;
  #process;
  #plan;
  #own;
  #witness;
  #history;
  #tokens = new Map();
  #runs;
  /** By queue. */
  #running = new Map();

  /** `own`: its part of the plan. `runs`: how often each job has run, in all processes. */
  constructor({ process, plan, own, witness, history, runs }) {
    this.#process = process;
    this.#plan = plan;
    this.#own = own;
    this.#witness = witness;
    this.#history = history;
    this.#runs = runs;
    process.loop.arrive(process.world.now, () => this.#start());
  }

  #start() {
    const { realm, name, world } = this.#process;
    const { Queue } = realm.load('queue/queue.js');
    const index = this.#plan.processes.indexOf(this.#own);
    const keeping = this.#keeping();
    const onError = (error) => {
      this.#history.note(name, `error: ${error.message}`, { errors: true });
      this.#witness.heardOf(this.#process, error);
    };
    this.queue = new Queue(QUEUE, { ...keeping, addTimeoutMs: ADD_TIMEOUT_MS });
    this.queue.on('error', onError);
    if (this.#own.concurrency > 0) this.worker = this.#startWorker(QUEUE, realm, keeping, onError);
    if (this.#own.stands) this.#startLeader(realm, onError);
    for (const job of this.#plan.jobs) if (job.by === index && job.at >= world.now) this.#at(job.at, () => this.#add(job));
    if (this.#plan.schedules?.length > 0) this.#startSchedules();
    if (this.#plan.flows?.length > 0) this.#startFlows(realm, index, keeping, onError);
    for (const command of this.#plan.commands)
      if (command.by === index && command.at >= world.now) this.#at(command.at, () => this.#command(command));
    for (const name of this.#plan.names) if (name.by === index && name.at >= world.now) this.#at(name.at, () => this.#lock(name));
  }

  /** Every process makes all schedules when it starts, as programs do. */
  #startSchedules() {
    for (const schedule of this.#plan.schedules) this.#at(this.#process.world.now, () => this.#upsert(schedule));
  }

  /** A program that cannot reach the store tries again. */
  async #upsert({ id, everyMs, overlap, catchUp, endMs, runs }) {
    const repeat = { every: everyMs, overlap, catchUp, endDate: EPOCH_MS + endMs };
    for (let tries = 0; tries < 100 && this.#process.world.now < endMs; tries += 1) {
      try {
        await this.queue.upsertJobScheduler(id, repeat, { data: { runs }, opts: { attempts: 2, removeOnComplete: true } });
        return;
      } catch (error) {
        this.#history.note(this.#process.name, `the upsert of ${id} failed: ${error.message}`);
        await this.#process.sleep(300);
      }
    }
  }

  #keeping() {
    const { lockMs, renewMs, sweepMs, maxStalls, graceMs } = this.#plan;
    return {
      connection: CONNECTION,
      lockDuration: lockMs,
      ...(renewMs === undefined ? {} : { lockRenewTime: renewMs }),
      stalledInterval: sweepMs,
      maxStalledCount: maxStalls,
      crashGraceMs: graceMs,
      useDedicatedLockThread: this.#own.hasThread,
    };
  }

  #startFlows(realm, index, keeping, onError) {
    const { FlowProducer } = realm.load('queue/flow-producer.js');
    this.flows = new FlowProducer({ connection: CONNECTION, addTimeoutMs: ADD_TIMEOUT_MS });
    this.flows.on('error', onError);
    if (this.#own.concurrency > 0) this.childWorker = this.#startWorker(CHILD_QUEUE, realm, keeping, onError);
    const own = this.#plan.flows.filter(({ by, at }) => by === index && at >= this.#process.world.now);
    for (const flow of own) this.#at(flow.at, () => this.#addFlow(flow));
  }

  async #addFlow({ tree }) {
    const acknowledge = ({ job, children = [] }) => {
      this.#witness.acknowledged(job);
      for (const child of children) acknowledge(child);
    };
    try {
      acknowledge(await this.flows.add(treeOf(tree)));
    } catch (error) {
      this.#history.note(this.#process.name, `the add of ${tree.id} was not acknowledged: ${error.message}`);
    }
  }

  #startWorker(queue, realm, keeping, onError) {
    const { Worker } = realm.load('worker/worker.js');
    const { concurrency, prefetch, isTimed } = this.#own;
    this.#process.mostJobs = concurrency + prefetch;
    this.#process.isTimed = isTimed;
    const worker = new Worker(queue, (job, token, signal) => this.#run(job, token, signal), {
      ...keeping,
      concurrency,
      prefetch,
      skipLockRenewal: isTimed,
      ...(this.#plan.limiter === undefined ? {} : { limiter: this.#plan.limiter }),
      ...(this.#plan.groupConcurrency === undefined ? {} : { group: { concurrency: this.#plan.groupConcurrency } }),
      ...(this.#plan.timeoutGraceMs === undefined ? {} : { timeoutGraceMs: this.#plan.timeoutGraceMs }),
      drainDelay: 1,
      runRetryDelay: 1000,
    });
    worker.on('error', onError);
    worker.on('completed', (job) => this.#witness.toldCompleted(this.#process, job, this.#tokens.get(job)));
    return worker;
  }

  #startLeader(realm, onError) {
    const { Leader } = realm.load('lock/leader.js');
    const { connection, stalledInterval, crashGraceMs, useDedicatedLockThread } = this.#keeping();
    const leaderTimeout = this.#plan.lockMs;
    this.leader = new Leader(QUEUE, { connection, stalledInterval, crashGraceMs, useDedicatedLockThread, leaderTimeout });
    this.leader.on('leader', (term) => this.#witness.trust.toldLeader(this.#process, term));
    this.leader.on('error', onError);
    this.#witness.stands(this.leader, this.#process);
  }

  #at(at, call) {
    const { loop, world } = this.#process;
    this.pending += 1;
    loop.setTimeout(() => void call().finally(() => (this.pending -= 1)), at - world.now);
  }

  async #add({ index, id, attempts, delayMs, priority, lockKey, group, unique, timeoutMs, runs }) {
    const options = {
      attempts,
      backoff: { type: 'fixed', delay: 20 },
      delay: Math.floor(delayMs),
      priority,
      ...(id === undefined ? {} : { jobId: id }),
      ...(lockKey === undefined ? {} : { lockKey }),
      ...(group === undefined ? {} : { group: { id: group } }),
      ...(unique === undefined ? {} : { deduplication: unique }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
    try {
      const job = await this.queue.add('work', { index, runs }, options);
      this.#witness.acknowledged(job);
    } catch (error) {
      this.#history.note(this.#process.name, `an add was not acknowledged: ${error.message}`);
    }
  }

  /** A program that gets no reply tries again. */
  async #command(command) {
    for (let tries = 0; tries < COMMAND_TRIES; tries += 1) {
      try {
        return await this.#send(command);
      } catch (error) {
        const { kind, job } = command;
        this.#history.note(this.#process.name, `the ${kind} of ${job} failed: ${error.message}`, { jobs: [job] });
        await this.#process.sleep(200);
      }
    }
  }

  async #send({ kind, job: id, name, index, children }) {
    switch (kind) {
      case 'signal':
        return this.queue.signal(id, name, `signal ${index}`);
      case 'cancel':
        return this.queue.cancel(id, `command ${index}`, { children });
      case 'cancel all':
        return this.queue.cancelJobs({ reason: `command ${index}` });
      case 'retry': {
        const job = await this.queue.getJob(id);
        return job?.retry('failed', name === undefined ? {} : { fromStep: name });
      }
    }
  }

  async #lock({ name, holdMs }) {
    try {
      await this.queue.lock(name, (lock) => this.#holding(lock, () => this.#process.sleep(holdMs)));
    } catch (error) {
      this.#history.note(this.#process.name, `the work under "${name}" failed: ${error.message}`, { names: [name] });
    }
  }

  async #holding(lock, work) {
    const ended = this.#witness.holds(lock, this.#process);
    try {
      await work();
    } finally {
      ended();
    }
  }

  async #run(job, token, signal) {
    this.#tokens.set(job, token);
    const nth = this.#runs.get(job.id) ?? 0;
    this.#runs.set(job.id, nth + 1);
    const ended = this.#witness.runs(job, this.#process, signal);
    const running = this.#begin(job);
    let hasStopped = false;
    try {
      for (const deed of job.data.runs[nth % job.data.runs.length]) await this.#do(deed, job, signal);
      return nth;
    } catch (error) {
      // Thrown after the lock was lost or the worker was closed by force: the job goes back, uncharged.
      hasStopped = signal.aborted;
      throw error;
    } finally {
      // A run whose time was over has ended before.
      const isOver = this.#process.clock.monotonic() >= running.get(job);
      running.delete(job);
      ended(hasStopped || isOver);
    }
  }

  /** A run whose time is over has no slot, whether or not its handler has ended. */
  #begin(job) {
    const running = this.#running.get(job.queueName) ?? new Map();
    this.#running.set(job.queueName, running);
    const now = this.#process.clock.monotonic();
    const { timeoutGraceMs = 0 } = this.#plan;
    running.set(job, now + (job.opts.timeoutMs ?? Number.POSITIVE_INFINITY) + timeoutGraceMs - TIMER_MS);
    const count = [...running.values()].filter((overAt) => now < overAt).length;
    if (count > this.#own.concurrency) this.#witness.tooMany(this.#process, count, job);
    return running;
  }

  async #do(deed, job, signal) {
    const { kind, ms } = deed;
    switch (kind) {
      case 'step':
      case 'nap':
      case 'await':
        return this.#durable(deed, job);
      case 'sleep':
        return this.#process.sleep(ms);
      case 'block':
        this.#history.note(this.#process.name, `is blocked for ${Math.round(ms)} ms by the handler of ${job.id}`, {
          jobs: [job.id],
        });
        return this.#process.block(ms);
      case 'throw':
        throw new Error('a handler throws');
      case 'progress':
        return refusable(job.updateProgress({ ms }));
      case 'data':
        return refusable(job.updateData({ ...job.data, ms }));
      case 'extend':
        return refusable(job.extendLock(job.lock.token, Math.max(10, Math.floor(ms))));
      case 'lock':
        return this.#lock({ name: 'x', holdMs: ms / 4 });
      case 'stop when told':
        for (let left = 10; left > 0 && !signal.aborted; left -= 1) await this.#process.sleep(ms / 10);
        return signal.throwIfAborted();
      default:
        throw new Error(`no handler knows how to ${kind}`);
    }
  }

  /** A stubborn handler catches what it should let pass, and goes on. */
  async #durable(deed, job) {
    try {
      if (deed.kind === 'step') await this.#step(deed, job);
      else if (deed.kind === 'nap') await job.sleep(deed.name, Math.floor(deed.ms));
      else await this.#waitFor(deed, job);
    } catch (error) {
      if (!deed.isStubborn || error.name === 'DelayedError') throw error;
      this.#history.note(this.#process.name, `goes on with ${job.id}: ${error.message}`, { jobs: [job.id] });
    }
  }

  async #step({ name, ms, blocks }, job) {
    const { token } = job.lock;
    const value = await job.step(name, async ({ key }) => {
      this.#history.note(this.#process.name, `does ${name} of ${job.id}`, { jobs: [job.id] });
      this.#witness.books.steps.began(job, token, name, key);
      await (blocks ? this.#process.block(ms) : this.#process.sleep(ms));
      return `${name} by ${token}`;
    });
    this.#witness.books.steps.stepped(job, name, value);
  }

  async #waitFor({ name, ms }, job) {
    let data;
    try {
      data = await job.waitFor(name, { timeoutMs: Math.max(1, Math.floor(ms)) });
    } catch (error) {
      // The time limit of the run has the same code.
      if (error.code !== 'TIMEOUT' || error === job.lock.signal?.reason) throw error;
    }
    this.#witness.books.steps.waited(job, name, data);
  }
}

/** The flow as a FlowProducer takes it. */
function treeOf({ id, queue, attempts, runs, onFailure, sendsLetter, isRemoved, children }) {
  const opts = { jobId: id, attempts, backoff: { type: 'fixed', delay: 20 } };
  if (onFailure !== undefined) opts[onFailure] = true;
  if (sendsLetter) opts.deadLetter = LETTER_QUEUE;
  if (isRemoved) opts.removeOnComplete = true;
  return { name: 'work', queueName: queue, data: { runs }, opts, children: children.map(treeOf) };
}

/** A handler that lost its lock goes on all the same, to see whether it can still do harm. */
async function refusable(writing) {
  try {
    await writing;
  } catch {
    // Refused, as it should be.
  }
}
