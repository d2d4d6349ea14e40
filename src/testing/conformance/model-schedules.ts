// The schedules of the model: which job is the next one of each, and which schedules are owing.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { ScheduleChange, ScheduleRecord, ScheduleReply, Slot } from '../../store/contract/index.js';
import { only } from './expect.js';
import type { ModelJob, ModelJobs } from './model-jobs.js';
import type { Random } from './random.js';
import { newJob } from './samples.js';
import type { Scene } from './scene.js';

const IDS = ['s0', 's1', 's2'];
const FAR_MS = 3_600_000;
/** Few slots, so that some are taken. */
const SLOTS = 6;

export class ModelSchedules {
  readonly #random: Random;
  readonly #jobs: ModelJobs;
  readonly #known = new Map<string, ScheduleRecord>();

  constructor(random: Random, jobs: ModelJobs) {
    this.#random = random;
    this.#jobs = jobs;
  }

  /** How many schedules are owing. */
  get owing(): number {
    return [...this.#known.values()].filter(({ state }) => state === 'owing').length;
  }

  /** Makes one or two random changes, most of them under the right version, and now and then repeats them. */
  async change(scene: Scene): Promise<void> {
    const changes = this.#random.some(IDS, 2).map((id) => this.#draw(id));
    const expected = changes.map((change) => this.#apply(change));
    const replies = await scene.store.schedule(scene.queue, changes);
    replies.forEach((reply, index) => this.#adopt(expected[index], reply));
    assert.deepEqual(replies, expected.map(shown));
    if (!this.#random.chance(4)) return;
    const again = changes.map((change) => this.#apply(change));
    assert.deepEqual(await scene.store.schedule(scene.queue, changes), again.map(shown), 'repeated');
  }

  /** Advances all schedules that are owing, as workers do. */
  async advance(scene: Scene): Promise<void> {
    for (const { id, version, state } of [...this.#known.values()]) {
      if (state !== 'owing') continue;
      const change = { kind: 'advance', id, version, next: this.#slot(id) } as const;
      const expected = this.#apply(change);
      assert.deepEqual(only(await scene.store.schedule(scene.queue, [change])), shown(expected));
    }
  }

  isNext(jobId: string): boolean {
    return this.#ofJob(jobId) !== undefined;
  }

  /** Call it with each job of a claim, before the job is active in the model. */
  claimed({ id, debt }: ClaimedJob): void {
    const schedule = this.#ofJob(id);
    if (schedule === undefined || schedule.serial) {
      assert.equal(debt, undefined, `${id} carries no debt`);
      return;
    }
    this.#owe(schedule);
    const { now: _, ...record } = debt ?? assert.fail(`${id} carries a debt`);
    assert.deepEqual(record, { ...schedule });
  }

  /** Call it when a job has finished, before it is trimmed. */
  ended(id: string): void {
    const schedule = this.#ofJob(id);
    if (schedule !== undefined) this.#owe(schedule);
  }

  /** Asserts that the store has the same schedules, and that each running one has one next job or is owing. */
  async compare({ store, queue }: Scene): Promise<void> {
    const { schedules } = await store.status(queue, { schedules: { ids: IDS } });
    const known = IDS.flatMap((id) => this.#known.get(id) ?? []);
    assert.deepEqual(schedules?.records, known, 'the schedules');
    assert.equal((await store.status(queue, { schedules: { count: true } })).schedules?.count, known.length);
    for (const { id, state, serial, nextJobId } of known) {
      if (state !== 'running') continue;
      const job = this.#jobs.get(nextJobId ?? assert.fail(`${id} has a next job`));
      assert(job.state === 'waiting' || job.state === 'delayed' || (serial && job.state === 'active'), `${nextJobId} is next`);
    }
  }

  #draw(id: string): ScheduleChange {
    const version = this.#random.chance(4) ? this.#random.int(3) : (this.#known.get(id)?.version ?? 0);
    const serial = this.#random.chance(2);
    const next = this.#random.chance(8) ? undefined : this.#slot(id);
    const kind = this.#random.pick(['put', 'put', 'advance', 'advance', 'pause', 'remove'] as const) ?? 'put';
    if (kind === 'put') return { kind, id, version, serial, spec: `"${this.#random.int(9)}"`, next };
    return kind === 'advance' ? { kind, id, version, next } : { kind, id, version };
  }

  #slot(id: string): Slot {
    const count = 1 + this.#random.int(SLOTS);
    const priority = this.#random.chance(3) ? 1 : 0;
    const dueInMs = this.#random.chance(2) ? FAR_MS : 0;
    return { at: count, dueInMs, count, job: { ...newJob({ priority }), id: `repeat:${id}:${count}` } };
  }

  #apply(change: ScheduleChange): ScheduleReply {
    const known = this.#known.get(change.id);
    if (known === undefined) return this.#create(change);
    if (known.version !== change.version || (change.kind === 'advance' && known.state !== 'owing'))
      return { status: 'stale', record: known };
    const old = known.nextJobId === undefined ? undefined : this.#jobs.get(known.nextJobId);
    const hasRun = old !== undefined && isStarted(old);
    const stays = hasRun && change.kind === 'put' && change.next !== undefined && change.serial && known.serial;
    const isOwn = (id: string): boolean => id === known.nextJobId && !hasRun;
    if ('next' in change && change.next !== undefined && !stays)
      if (this.#jobs.has(change.next.job.id) && !isOwn(change.next.job.id)) return { status: 'taken', record: known };
    known.version += 1;
    if (change.kind === 'pause') {
      if (old !== undefined && !hasRun) {
        this.#dismiss(known, true);
        known.count -= 1;
      }
      known.state = 'paused';
      return { status: 'done', record: known };
    }
    if (change.kind === 'remove') {
      this.#dismiss(known, old?.state === 'delayed' && !hasRun);
      this.#known.delete(known.id);
      return { status: 'done' };
    }
    if (change.kind === 'put') {
      Object.assign(known, { spec: change.spec, serial: change.serial, state: 'running' });
      if (stays) return { status: 'done', record: known };
      this.#dismiss(known, !hasRun);
    }
    return this.#make(known, change.next);
  }

  #create(change: ScheduleChange): ScheduleReply {
    if (change.kind !== 'put' || change.version !== 0) return { status: 'missing' };
    const { id, spec, serial, next } = change;
    if (next !== undefined && this.#jobs.has(next.job.id)) return { status: 'taken' };
    const record: ScheduleRecord = { id, version: 0, spec, serial, state: 'ended', at: 0, count: 0 };
    this.#known.set(id, record);
    return this.#make(record, next);
  }

  #make(record: ScheduleRecord, next: Slot | undefined): ScheduleReply {
    record.state = next === undefined ? 'ended' : 'running';
    if (next === undefined) return { status: 'done', record };
    const { at, count, dueInMs, job } = next;
    Object.assign(record, { at, count, nextJobId: job.id });
    const fresh = { priority: job.priority, key: undefined, unique: undefined, stalls: 0, steps: [], attempts: 0, starts: 0 };
    this.#jobs.set(job.id, { ...fresh, state: dueInMs > 0 ? 'delayed' : 'waiting', scheduleId: record.id });
    return { status: 'done', record };
  }

  #dismiss(record: ScheduleRecord, isRemoved: boolean): void {
    if (record.nextJobId !== undefined && isRemoved) this.#jobs.delete(record.nextJobId);
    delete record.nextJobId;
  }

  #owe(schedule: ScheduleRecord): void {
    delete schedule.nextJobId;
    schedule.version += 1;
    if (schedule.state === 'running') schedule.state = 'owing';
  }

  /** The store chooses the first version of a schedule. */
  #adopt(expected: ScheduleReply | undefined, { record }: ScheduleReply): void {
    if (expected?.status !== 'done' || expected.record?.version !== 0 || record === undefined) return;
    assert(record.version > 0, 'a version is above 0');
    expected.record.version = record.version;
  }

  #ofJob(jobId: string): ScheduleRecord | undefined {
    return [...this.#known.values()].find(({ nextJobId }) => nextJobId === jobId);
  }
}

function isStarted({ state, starts }: ModelJob): boolean {
  return state === 'active' || starts > 0;
}

/** Returns a copy, because the model changes its records. */
function shown({ status, record }: ScheduleReply): ScheduleReply {
  return record === undefined ? { status } : { status, record: { ...record } };
}
