// The schedules of a queue: makes them, reads them, pauses and removes them. Each change is made from what was read before, and is computed
// again if another process was faster.
import { HoldfastError } from '../errors.js';
import { Job } from '../handle/job.js';
import type { JobContext } from '../handle/job-context.js';
import { checkSchedulerId } from '../job/names.js';
import { newJob } from '../job/new-job.js';
import type { JobsOptions } from '../job/options.js';
import type { NewJob } from '../job/record.js';
import {
  checkEnd,
  checkRepeat,
  MAX_LISTED,
  type RepeatOptions,
  type RepeatStrategy,
  type Slot as Moment,
  type Timing,
} from '../job/schedule.js';
import type { ScheduleRecord } from '../job/schedule-record.js';
import { checkInteger, checkText, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { slotOf } from '../store/client/schedule-plan.js';
import { beginning, following, readSpec, type ScheduleSpec, slotsAfter } from '../store/client/schedule-slots.js';
import type { ScheduleChange, ScheduleQuery, ScheduleReply, SchedulesFound } from '../store/contract/index.js';
import { type Drafts, recordOf } from './draft.js';
import type { JobSchedulerTemplateOptions } from './scheduler-json.js';

export interface SchedulersOptions {
  context: JobContext;
  drafts: Drafts;
  strategy?: RepeatStrategy | undefined;
  /** Adds an ordinary job. */
  add(job: NewJob): Promise<Job>;
}

/** The template of a schedule's jobs. */
export interface JobTemplate<D = unknown> {
  /** Default: the id of the schedule. */
  name?: string;
  data?: D;
  opts?: JobSchedulerTemplateOptions;
}

/** The arguments of an upsert. */
export interface Upsert {
  id: string;
  repeat: RepeatOptions;
  /** How the caller names these options. Default: `repeat`. */
  path?: string;
  template?: JobTemplate | undefined;
}

/** Other processes change a schedule now and then, not all the time. */
const MAX_TRIES = 100;
const MAX_PATTERN = 500;
const DECIDED = ['jobId', 'delay', 'deduplication', 'repeat'];

const TEMPLATE_NAMES = new OptionNames<JobTemplate>({
  of: 'template',
  known: { name: true, data: true, opts: true },
  refuses: 'unknown objects',
});

export class Schedulers {
  readonly #options: SchedulersOptions;

  constructor(options: SchedulersOptions) {
    this.#options = options;
  }

  /** Throws what `upsert` would throw, as far as that can be seen without the store. */
  check({ id, repeat, path, template = {} }: Upsert): ScheduleSpec {
    return this.#spec(checkSchedulerId(id), this.#check(repeat, path), template);
  }

  /** Makes a schedule or replaces it. Returns its next job; undefined if it has none any more. */
  async upsert(given: Upsert): Promise<Job | undefined> {
    const spec = this.check(given);
    const { id } = given;
    const found = await this.#read({ ids: [id] });
    checkEnd(spec.timing, found.now);
    return this.#put(id, spec, found);
  }

  async get(id: string): Promise<ScheduleRecord | undefined> {
    return (await this.#read({ ids: [checkSchedulerId(id)] })).records[0];
  }

  async list(start = 0, end = -1, asc = false): Promise<ScheduleRecord[]> {
    for (const [option, value] of Object.entries({ start, end })) checkInteger(option, value, { min: Number.MIN_SAFE_INTEGER });
    // Stores count from the beginning, and know -1 as the end.
    const count = start < 0 || end < -1 ? await this.count() : 0;
    const from = start < 0 ? Math.max(0, count + start) : start;
    const to = end < -1 ? count + end : end;
    if (end !== -1 && to < from) return [];
    return (await this.#read({ start: from, end: to, asc })).records;
  }

  async count(): Promise<number> {
    return (await this.#read({ count: true })).count ?? 0;
  }

  /** Returns whether the schedule existed. */
  async remove(id: string): Promise<boolean> {
    return (await this.#change(id, ({ version }) => ({ kind: 'remove', id, version }))) !== undefined;
  }

  /** Makes no further job until `resume`. Returns whether the schedule existed. */
  async pause(id: string): Promise<boolean> {
    return (await this.#change(id, ({ version }) => ({ kind: 'pause', id, version }))) !== undefined;
  }

  /** Continues a paused schedule from now on. Returns its next job. */
  async resume(id: string): Promise<Job | undefined> {
    const { found, record } = await this.#known(id);
    return record.state === 'paused' ? this.#put(id, readSpec(record.spec), found) : this.#jobOf(record);
  }

  /** Adds one job from the template, now. The schedule does not change. */
  async trigger(id: string): Promise<Job> {
    const { found, record } = await this.#known(id);
    const { name, data, opts } = readSpec(record.spec);
    const now = Math.floor(found.now);
    const job = newJob(name, data, opts, JSON.stringify(opts), now);
    return this.#options.add({ ...job, delayMs: 0, timestamp: now, triggeredBy: id });
  }

  /** Returns the next `count` slots of a schedule, in epoch ms, the slot of the next job first; of a paused one, as if it were resumed now. */
  async nextTimes(id: string, count = 10): Promise<number[]> {
    const wanted = checkInteger('count', count, { min: 1, max: MAX_LISTED });
    const { found, record } = await this.#known(id);
    const { state } = record;
    if (state === 'ended') return [];
    const spec = readSpec(record.spec);
    const made = { at: record.at, count: record.count };
    const first = state === 'paused' ? await this.#slot(spec, record, found.now, undefined) : made;
    if (first === undefined) return [];
    const times = await slotsAfter(spec, first, found.now, wanted, this.#options.strategy);
    return state === 'owing' ? times : [first.at, ...times].slice(0, wanted);
  }

  #check(repeat: RepeatOptions, path: string | undefined): Timing {
    // A strategy of the user reads the pattern, so it need not be one of cron.
    if (this.#options.strategy === undefined || typeof repeat !== 'object' || (repeat?.pattern ?? undefined) === undefined)
      return checkRepeat(repeat, 0, path);
    const pattern = checkText('pattern', repeat.pattern, MAX_PATTERN);
    return { ...checkRepeat({ ...repeat, pattern: '* * * * *' }, 0, path), pattern };
  }

  #spec(id: string, timing: Timing, template: JobTemplate): ScheduleSpec {
    const { name = id, data, opts = {} } = TEMPLATE_NAMES.checked(template);
    const given = opts as Record<string, unknown>;
    for (const option of DECIDED)
      if (given?.[option] !== undefined)
        throw invalidOption(`opts.${option}`, given[option], 'left out: the schedule decides it');
    const job = this.#options.drafts.make(name, data, opts);
    const merged = JSON.parse(job.opts) as JobsOptions;
    const spec: ScheduleSpec = { name, data: job.data, opts: merged, timing };
    const shown = { ...(job.data !== '{}' && { data }), ...(Object.keys(merged).length > 0 && { opts: merged }) };
    if (Object.keys(shown).length > 0) spec.template = shown;
    if (timing.pattern !== undefined) spec.zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    return spec;
  }

  /** `found`: the schedule as it was read, if it exists. */
  async #put(id: string, spec: ScheduleSpec, found: SchedulesFound): Promise<Job | undefined> {
    const text = JSON.stringify(spec);
    const serial = spec.timing.overlap === 'skip';
    let {
      records: [record],
      now,
    } = found;
    let passed: Moment | undefined;
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const slot = await this.#slot(spec, record, now, passed);
      const next = slot && slotOf(id, spec, slot, now);
      const version = record?.version ?? 0;
      const { status, ...reply } = await this.#send({ kind: 'put', id, version, spec: text, serial, next });
      // Another process that put the same schedule in the meantime did this call's work.
      const isPut = status === 'stale' && reply.record?.spec === text && reply.record.state === 'running';
      if (status === 'done' || isPut) return this.#jobOf(reply.record, next?.job);
      if (status === 'taken' && slot !== undefined) {
        if (spec.timing.pattern !== undefined) throw this.#taken(id, next?.job.id ?? '');
        passed = slot;
      }
      ({
        records: [record],
        now,
      } = await this.#read({ ids: [id] }));
    }
    throw this.#unsettled(id);
  }

  /**
   * The same interval or pattern keeps its slot, also if that is due: its job has not run yet. So a process that upserts when it starts
   * drops no run. Anything else starts like a new schedule, whose count goes on.
   */
  async #slot(
    spec: ScheduleSpec,
    record: ScheduleRecord | undefined,
    now: number,
    passed: Moment | undefined,
  ): Promise<Moment | undefined> {
    const { strategy } = this.#options;
    if (passed !== undefined) return following(spec, { ...passed, count: passed.count - 1 }, now, strategy);
    if (record === undefined) return beginning(spec, 0, now, strategy);
    const { at, count, state } = record;
    const { startDate = at, endDate = at, limit = count } = spec.timing;
    if (at >= startDate && isSameGrid(spec, readSpec(record.spec))) {
      // A schedule whose next slot lies behind its new end or limit has ended.
      if (state === 'running') return at <= endDate && count <= limit ? { at, count } : undefined;
      if (state === 'owing') return following(spec, { at, count }, now, strategy);
    }
    return beginning(spec, state === 'running' ? count - 1 : count, now, strategy);
  }

  async #known(id: string): Promise<{ found: SchedulesFound; record: ScheduleRecord }> {
    const found = await this.#read({ ids: [checkSchedulerId(id)] });
    const record = found.records[0];
    if (record === undefined) throw this.#unknown(id);
    return { found, record };
  }

  async #change(id: string, change: (record: ScheduleRecord) => ScheduleChange): Promise<ScheduleReply | undefined> {
    checkSchedulerId(id);
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const { records } = await this.#read({ ids: [id] });
      if (records[0] === undefined) return undefined;
      const reply = await this.#send(change(records[0]));
      if (reply.status === 'done') return reply;
    }
    throw this.#unsettled(id);
  }

  async #jobOf(record: ScheduleRecord | undefined, made?: NewJob & { id: string }): Promise<Job | undefined> {
    const { context } = this.#options;
    if (record?.nextJobId === undefined) return undefined;
    if (record.nextJobId === made?.id) return new Job(context, { ...recordOf(made, made.id), scheduleId: record.id });
    const [found] = (await (await context.ready()).jobs(context.stored, [record.nextJobId])).jobs;
    return found && new Job(context, found);
  }

  async #send(change: ScheduleChange): Promise<ScheduleReply> {
    const { context } = this.#options;
    const [reply] = await (await context.ready()).schedule(context.stored, [change]);
    return reply ?? { status: 'missing' };
  }

  async #read(query: ScheduleQuery): Promise<SchedulesFound> {
    const { context } = this.#options;
    const { schedules } = await (await context.ready()).status(context.stored, { schedules: query });
    return schedules ?? { records: [], now: Date.now() };
  }

  #unknown(id: string): HoldfastError {
    const { name: queue } = this.#options.context;
    return new HoldfastError('JOB_MISSING', `Queue "${queue}" has no job scheduler "${id}": upsert it first.`, { queue });
  }

  #taken(id: string, jobId: string): HoldfastError {
    const { name: queue } = this.#options.context;
    const message = `Cannot create job scheduler iteration of "${id}": job ${jobId} exists already. Remove that job, or wait for its end.`;
    return new HoldfastError('JOB_STATE', message, { queue, jobId });
  }

  #unsettled(id: string): HoldfastError {
    const { name: queue } = this.#options.context;
    return new HoldfastError('JOB_STATE', `Job scheduler "${id}" is changed by other processes all the time: try again.`, {
      queue,
    });
  }
}

/** True if both make their slots in the same way. Dates and limits may differ. */
function isSameGrid({ timing, zone }: ScheduleSpec, old: ScheduleSpec): boolean {
  const { every, offset, pattern, tz } = timing;
  if (every !== undefined) return old.timing.every === every && old.timing.offset === offset;
  return old.timing.pattern === pattern && (old.timing.tz ?? old.zone) === (tz ?? zone);
}
