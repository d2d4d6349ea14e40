// The entries of deduplication of the model: who owns each id, and which draft follows. Times are far away or already over.
import assert from 'node:assert/strict';
import type { Deduplication } from '../../job/deduplication.js';
import type { NewJob } from '../../job/record.js';
import type { AddReply } from '../../store/contract/index.js';
import type { ModelJobs } from './model-jobs.js';
import type { Random } from './random.js';
import { newJob } from './samples.js';
import type { Scene } from './scene.js';

const IDS = ['d0', 'd1', 'd2'];
/** The id of entries whose time passes within one step. */
const BRIEF = 'brief';
const FAR_MS = 3_600_000;

export type AddedJob = NewJob & { id: string };

interface ModelEntry {
  owner: string;
  /** True: the entry stays when its owner ends. */
  timed: boolean;
  draft?: AddedJob;
}

export class ModelEntries {
  readonly #random: Random;
  readonly #jobs: ModelJobs;
  readonly #entries = new Map<string, ModelEntry>();

  constructor(random: Random, jobs: ModelJobs) {
    this.#random = random;
    this.#jobs = jobs;
  }

  /** Returns a random deduplication for a new job. */
  mode(): Deduplication {
    return {
      id: this.#random.pick(IDS) ?? assert.fail(),
      ...(this.#random.chance(3) && { ttlMs: FAR_MS }),
      extend: this.#random.chance(2),
      replaceDelayed: this.#random.chance(2),
      keepLastIfActive: this.#random.chance(2),
    };
  }

  /** The number of drafts that become jobs when their owners end. */
  get drafts(): number {
    return [...this.#entries.values()].filter(({ draft }) => draft !== undefined).length;
  }

  draftIds(): string[] {
    return [...this.#entries.values()].flatMap(({ draft }) => (draft === undefined ? [] : [draft.id]));
  }

  /** Applies an add to the model. Returns the reply that the store must give. */
  add(job: AddedJob): AddReply {
    const { id, deduplication: mode } = job;
    if (this.#jobs.has(id)) return { id, status: 'duplicate' };
    const entry = mode === undefined ? undefined : this.#entries.get(mode.id);
    if (mode === undefined || entry === undefined) return this.#enter(job, mode?.ttlMs !== undefined && !mode.keepLastIfActive);
    const extended = mode.extend === true && mode.ttlMs !== undefined && mode.keepLastIfActive !== true;
    const state = this.#jobs.has(entry.owner) ? this.#jobs.get(entry.owner).state : 'missing';
    if (mode.replaceDelayed === true && state === 'delayed') {
      this.#jobs.delete(entry.owner);
      return this.#enter(job, entry.timed || extended);
    }
    if (mode.keepLastIfActive === true && state === 'active') {
      entry.draft = job;
      entry.timed = false;
    } else if (extended && entry.draft === undefined) entry.timed = true;
    return { id: entry.owner, status: 'deduplicated' };
  }

  /** Call it when a job has finished, before it is trimmed. */
  ended(id: string): void {
    const found = this.#ownedBy(id);
    if (found === undefined || found.timed) return;
    this.#entries.delete(found.key);
    if (found.draft !== undefined && !this.#jobs.has(found.draft.id)) this.#enter(found.draft, false);
  }

  /** Call it when a caller has removed a job. */
  removed(id: string): void {
    const found = this.#ownedBy(id);
    if (found !== undefined) this.#entries.delete(found.key);
  }

  /** Call it when a finished job waits again. */
  reopened(id: string): void {
    const key = this.#jobs.get(id).unique;
    if (key !== undefined && !this.#entries.has(key)) this.#entries.set(key, { owner: id, timed: false });
  }

  async forget({ store, queue }: Scene): Promise<void> {
    const chosen = this.#random.some([...IDS, 'unknown'], 2);
    const ownedBy = this.#random.chance(2) ? this.#random.pick(this.#jobs.ids()) : undefined;
    const gone = chosen.filter(
      (id) => this.#entries.has(id) && (ownedBy === undefined || this.#entries.get(id)?.owner === ownedBy),
    );
    const what = { deduplication: chosen, ...(ownedBy !== undefined && { ownedBy }) };
    assert.equal(await store.forget(queue, what), gone.length);
    for (const id of gone) this.#entries.delete(id);
  }

  /** Adds two jobs with one deduplication id and a time, and lets this time pass. */
  async passBrief(scene: Scene, names: [string, string]): Promise<void> {
    const { store, queue } = scene;
    const jobs = names.map((id) => newJob({ id, deduplication: { id: BRIEF, ttlMs: scene.ms(5) } }) as AddedJob);
    const expected = jobs.map((job) => this.add(job));
    assert.deepEqual(await store.add(queue, jobs, scene.call('brief')), expected);
    await scene.pass(6);
    // A finished job that was retried may own the entry instead, without a time.
    if (this.#entries.get(BRIEF)?.timed === true) this.#entries.delete(BRIEF);
  }

  async compare({ store, queue }: Scene): Promise<void> {
    const asked = [...IDS, BRIEF];
    const { deduplication } = await store.status(queue, { deduplication: asked });
    assert.deepEqual(
      deduplication,
      asked.map((id) => this.#entries.get(id)?.owner),
      'who owns each deduplication id',
    );
  }

  #enter(job: AddedJob, timed: boolean): AddReply {
    const { id, priority, delayMs, lockKey: key, group, deduplication } = job;
    const state = delayMs > 0 ? 'delayed' : 'waiting';
    this.#jobs.set(id, { state, priority, key, group, unique: deduplication?.id, stalls: 0, steps: [], attempts: 0, starts: 0 });
    if (deduplication !== undefined) this.#entries.set(deduplication.id, { owner: id, timed });
    return { id, status: 'added' };
  }

  #ownedBy(id: string): (ModelEntry & { key: string }) | undefined {
    for (const [key, entry] of this.#entries) if (entry.owner === id) return { key, ...entry };
    return undefined;
  }
}
