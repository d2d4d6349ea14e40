// The steps and the cancels of the model.
import assert from 'node:assert/strict';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import { isFinished } from '../../job/state.js';
import type { ListName, Step } from '../../store/contract/index.js';
import { type ChangeStatus, replyById } from '../../store/change-reply.js';
import { only, sorted } from './expect.js';
import type { ModelJob, ModelJobs } from './model-jobs.js';
import type { Random } from './random.js';
import type { Scene } from './scene.js';

const NAMES = ['a', 'b', 'c'];
const SIGNALS = ['go', 'stop'];
const REASON = 'cancelled by the model';
const FAR_MS = 3_600_000;

interface Endings {
  /** The job has failed in this step. */
  failed(id: string): void;
}

export class ModelSteps {
  readonly #random: Random;
  readonly #jobs: ModelJobs;
  readonly #endings: Endings;
  #values = 0;

  constructor(random: Random, jobs: ModelJobs, endings: Endings) {
    this.#random = random;
    this.#jobs = jobs;
    this.#endings = endings;
  }

  /** A running job, or a run that has ended, records a step. */
  async record(scene: Scene, runs: ClaimedJob[]): Promise<void> {
    const run = this.#random.pick(runs);
    if (run === undefined) return;
    const { id: jobId, token } = run;
    const step = this.#step(NAMES);
    const reply = only(await scene.store.write(scene.queue, [{ kind: 'step', jobId, token, ...step }]));
    const job = this.#jobs.has(jobId) ? this.#jobs.get(jobId) : undefined;
    if (job === undefined || job.held?.token !== token) {
      assert.equal(reply.status, job === undefined ? 'missing' : 'lost');
      return;
    }
    assert.deepEqual(reply, { status: 'done', value: this.#add(job, step) });
    job.stalls = 0;
  }

  async signal(scene: Scene): Promise<void> {
    const jobId = this.#random.pick([...this.#jobs.ids(), 'ghost']) ?? 'ghost';
    const step = this.#step(SIGNALS);
    const reply = only(await scene.store.write(scene.queue, [{ kind: 'step', jobId, ...step }]));
    const job = this.#jobs.has(jobId) ? this.#jobs.get(jobId) : undefined;
    if (job === undefined || isFinished(job.state)) {
      assert.equal(reply.status, job === undefined ? 'missing' : 'ended');
      return;
    }
    assert.deepEqual(reply, { status: 'done', value: this.#add(job, step) });
    if (job.state === 'delayed' && job.awaits === step.name) job.state = 'waiting';
  }

  /** A delay that records a step, and perhaps waits for a signal. */
  sleep({ id, token }: ClaimedJob): Outcome {
    const awaits = this.#random.pick([undefined, ...SIGNALS]);
    return { kind: 'delay', jobId: id, token, delayMs: FAR_MS, step: this.#step(NAMES), ...(awaits !== undefined && { awaits }) };
  }

  /** Returns true if the job has what the outcome would wait for: the store refuses it as `ready`. */
  isReady(outcome: Outcome): boolean {
    const { awaits } = outcome as { awaits?: string };
    return awaits !== undefined && stepOf(this.#jobs.get(outcome.jobId), awaits) !== undefined;
  }

  /** Call it when a run ends with a delay. */
  delayed(job: ModelJob, outcome: Outcome): void {
    const { step, awaits } = outcome as { step?: Step; awaits?: string };
    if (step !== undefined) {
      this.#add(job, step);
      job.stalls = 0;
    }
    job.awaits = awaits;
  }

  async cancel(scene: Scene): Promise<void> {
    const chosen = [...this.#random.some(this.#jobs.ids(), 2), 'ghost'];
    const statuses = chosen.map((id): ChangeStatus => {
      if (!this.#jobs.has(id)) return 'missing';
      return isFinished(this.#jobs.get(id).state) ? 'state' : 'done';
    });
    const expected = replyById(chosen, statuses);
    assert.deepEqual(await scene.store.change(scene.queue, chosen, { kind: 'cancel', reason: REASON }), expected);
    for (const id of expected.changed) this.#cancelled(id);
  }

  async cancelSelected(scene: Scene): Promise<void> {
    const list: ListName = this.#random.pick(['waiting', 'prioritized', 'delayed', 'active'] as const) ?? 'active';
    const there = this.#jobs.inList(list).filter((id) => this.#jobs.get(id).cancelled !== true);
    const limit = 1 + this.#random.int(2);
    const { changed } = await scene.store.change(scene.queue, { lists: [list], limit }, { kind: 'cancel', reason: REASON });
    assert.equal(changed.length, Math.min(limit, there.length), `how many of ${list} were cancelled`);
    for (const id of changed) {
      assert(there.includes(id), `${id} is ${list}`);
      this.#cancelled(id);
    }
  }

  async retryFrom(scene: Scene): Promise<string | undefined> {
    const jobId = this.#random.pick(this.#jobs.in('failed'));
    if (jobId === undefined) return undefined;
    const job = this.#jobs.get(jobId);
    const fromStep = this.#random.pick([...job.steps.map(({ name }) => name), 'unknown']) ?? 'unknown';
    const at = job.steps.findIndex(({ name }) => name === fromStep);
    const change = { kind: 'retry', from: 'failed', resetAttemptsMade: false, resetAttemptsStarted: false, fromStep } as const;
    const expected = replyById([jobId], [at === -1 ? 'noStep' : 'done']);
    assert.deepEqual(await scene.store.change(scene.queue, [jobId], change), expected);
    if (at === -1) return undefined;
    job.steps.splice(at);
    job.state = 'waiting';
    return jobId;
  }

  async compare(scene: Scene): Promise<void> {
    for (const [id, job] of this.#jobs) {
      const { steps } = await scene.store.jobs(scene.queue, { stepsOf: id });
      assert.deepEqual(steps, job.steps, `the steps of ${id}`);
      const { hasSteps, cancelled } = await scene.job(id);
      if (steps.length > 0) assert.equal(hasSteps, true, `${id} has steps`);
      assert.equal(cancelled, job.cancelled === true ? REASON : undefined, `the cancel of ${id}`);
    }
    const { steps } = await scene.store.jobs(scene.queue, { stepsOf: 'ghost' });
    assert.deepEqual(sorted(steps.map(({ name }) => name)), []);
  }

  #cancelled(id: string): void {
    const job = this.#jobs.get(id);
    if (job.held !== undefined) {
      job.cancelled = true;
      return;
    }
    job.state = 'failed';
    this.#endings.failed(id);
  }

  #step(names: string[]): Step {
    return { name: this.#random.pick(names) ?? 'a', value: String((this.#values += 1)) };
  }

  #add(job: ModelJob, step: Step): string {
    const known = stepOf(job, step.name);
    if (known !== undefined) return known;
    job.steps.push(step);
    return step.value;
  }
}

function stepOf({ steps }: ModelJob, name: string): string | undefined {
  return steps.find((step) => step.name === name)?.value;
}
