// JobSnapshot: the private side of a Job, shared by its helpers. It holds the job as last seen, the job context and the lock of the handle.
// The record is authoritative; after each change the snapshot refreshes the fields that the handle shows.
import { HoldfastError } from '../errors.js';
import type { JobLock } from '../job/lock.js';
import { refusedByChildren } from '../job/family-refusal.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { JobRecord } from '../job/record.js';
import {
  DECODED_AT_ONCE,
  decodedOnUse,
  decodePayload,
  ENCODED,
  type JobFields,
  PAYLOADS,
  type Payload,
  type PayloadReader,
  shown,
  showPlain,
} from './fields.js';
import { type Aliased, aliasedLock } from './aliases.js';
import type { JobContext } from './job-context.js';

export class JobSnapshot implements PayloadReader {
  /** This handle has settled its run. */
  ended = false;
  /** This handle has put its job back itself. */
  hasMoved = false;
  /** Writes under the token of the run without a reply. */
  openWrites = 0;
  /** The run was ended while its handler went on. */
  isCutShort = false;
  /** The run has completed its job in a transaction of the user. */
  isCompleting = false;
  /** Set if another handle took the job, under the alias. */
  #holder: Aliased['context'] | undefined;
  /** Payloads with accessors that were read or set. */
  #decoded: { [P in Payload]?: unknown } | undefined;

  constructor(
    readonly job: JobFields,
    readonly context: JobContext,
    public record: JobRecord,
    public lock: JobLock,
    /** The token that the user gave to `getNextJob`; it stands for the real one. */
    public alias: string | undefined,
  ) {}

  /** Decodes on first use, and only once, so that changes which a handler makes to the value stay. */
  read(payload: Payload): unknown {
    const decoded = (this.#decoded ??= {});
    if (!(payload in decoded)) decoded[payload] = decodePayload(payload, this.record);
    return decoded[payload];
  }

  set(payload: Payload, value: unknown): void {
    (this.#decoded ??= {})[payload] = value;
  }

  /** Updates the fields from the record, apart from payloads. */
  refresh(): void {
    showPlain(this.job, this.record);
  }

  /**
   * The token that this handle's writes carry. It stays after the lock was lost and after the run was settled. Otherwise a handler that
   * goes on regardless would pass for an outsider, whose writes need no token.
   */
  get token(): string | undefined {
    return this.lock.token === '' ? undefined : this.lock.token;
  }

  /** Returns the token that an owner's move sends to the store. An unknown token is sent as it is: the store refuses it. */
  tokenFor(given: string | undefined, action: string): string {
    if (this.token === undefined && typeof given === 'string') this.#adopt(given);
    const token = given === undefined || given === this.alias ? (this.token ?? given) : given;
    if (typeof token === 'string' && token !== '') return token;
    const hint = 'Only the owner of its lock may do that: take the job from a worker, or pass the token.';
    throw new HoldfastError(
      'NO_TOKEN',
      `${action} of job ${this.record.id} of queue "${this.context.name}" needs a token. ${hint}`,
      this.#facts,
    );
  }

  /** The job was taken under this name through another handle of the process: from now on this handle has its lock too. */
  #adopt(alias: string): void {
    const found = aliasedLock(this.context.stored, this.record.id, alias);
    if (found === undefined) return;
    this.lock = found.lock;
    this.alias = alias;
    this.#holder = found.context;
  }

  /** Returns the context through which the owner's moves go: that which holds the lock, unless it uses another store. */
  async holder(): Promise<Pick<JobContext, 'settle' | 'extend'>> {
    const holder = this.#holder;
    if (holder === undefined) return this.context;
    const [own, its] = await Promise.all([this.context.ready(), holder.ready()]);
    return own === its ? holder : this.context;
  }

  /** Throws unless the store applied the change. */
  accept(status: SettleStatus, action: string): void {
    if (status === 'done') return;
    const subject = `${action} of job ${this.record.id} of queue "${this.context.name}" changed nothing`;
    if (status === 'missing') throw new HoldfastError('JOB_MISSING', `${subject}: the job does not exist any more.`, this.#facts);
    if (status === 'pending' || status === 'unsuccessful')
      throw refusedByChildren(this.record.id, status, 'moveToFinished', this.context.name);
    throw new HoldfastError('LOCK_LOST', `${subject}: ${this.#whyLost()}. Stop working on it.`, this.#facts);
  }

  #whyLost(): string {
    if (this.isCutShort) return 'its worker gave this run up, because its time limit was over or the worker was closed';
    if (this.token === undefined)
      return 'the token does not hold its lock. A name that was given to getNextJob is known in its own process alone: elsewhere, pass job.lock.token of the job that it returned. If the lock was lost, another worker may be running the job';
    return this.ended ? 'this run of it has ended already' : 'its lock is no longer ours, and another worker may be running it';
  }

  missing(action: string): HoldfastError {
    const { record, context } = this;
    return new HoldfastError(
      'JOB_MISSING',
      `${action}: job ${record.id} of queue "${context.name}" does not exist (any more).`,
      this.#facts,
    );
  }

  /** Called after the job's lock was taken by hand: from now on this handle owns it, and shows the job as it was then. */
  taken(record: JobRecord, lock: JobLock): void {
    this.record = record;
    this.lock = lock;
    this.alias = undefined;
    this.#holder = undefined;
    this.ended = false;
    this.hasMoved = false;
    this.refresh();
    for (const payload of PAYLOADS) this.#refreshPayload(payload);
    this.job.token = this.token;
  }

  /** The store has accepted a move of this handle that puts the job back. */
  moved(outcome: Outcome): void {
    this.settled(outcome);
    this.hasMoved = true;
  }

  /** Updates the fields to the accepted outcome. Times are on this host's clock; the store's times come with the next read of the job. */
  settled(outcome: Outcome): void {
    const { record } = this;
    this.ended = true;
    switch (outcome.kind) {
      case 'completed':
        record.returnvalue = outcome.value;
        this.#refreshPayload('returnvalue');
        record.state = 'completed';
        break;
      case 'failed':
      case 'retry':
        record.failedReason = outcome.reason;
        record.stacktrace = outcome.stacktrace;
        this.#refreshPayload('stacktrace');
        record.state = outcome.kind === 'failed' ? 'failed' : 'waiting';
        break;
      case 'children':
        record.state = 'waiting-children';
        break;
      case 'delay':
      case 'release':
      case 'return':
        record.state = 'waiting';
    }
    if (record.state === 'waiting-children') {
      record.delay = 0;
    } else if (record.state === 'waiting') {
      record.delay = 'delayMs' in outcome ? outcome.delayMs : 0;
      if (record.delay > 0) record.state = 'delayed';
    } else {
      record.finishedOn = Date.now();
    }
    if (outcome.kind === 'completed' || outcome.kind === 'failed' || outcome.kind === 'retry') record.attemptsMade += 1;
    this.refresh();
  }

  /** Updates the fields after a finished job went back to waiting. */
  retried(reset: { resetAttemptsMade: boolean; resetAttemptsStarted: boolean }): void {
    const { record } = this;
    delete record.failedReason;
    delete record.finishedOn;
    delete record.processedOn;
    delete record.returnvalue;
    this.#refreshPayload('returnvalue');
    record.state = 'waiting';
    if (reset.resetAttemptsMade) record.attemptsMade = 0;
    if (reset.resetAttemptsStarted) record.attemptsStarted = 0;
    this.refresh();
  }

  #refreshPayload(payload: Payload): void {
    const value = shown[payload](this.record[payload] as string, DECODED_AT_ONCE);
    if (this.#decoded !== undefined) delete this.#decoded[payload];
    if (value === ENCODED)
      Object.defineProperty(
        this.job,
        payload,
        decodedOnUse(payload, () => this),
      );
    else this.job[payload] = value as never;
  }

  get #facts(): { jobId: string; queue: string } {
    return { jobId: this.record.id, queue: this.context.name };
  }
}
