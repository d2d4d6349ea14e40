// What a Job and its helpers share: the job as last seen, who handed it out, and the lock that came with it. Payloads are decoded
// on first use and once: a worker makes tens of thousands of these a second, and many of their payloads are never looked at.
import { HoldfastError } from '../errors.js';
import type { JobLock } from '../job/lock.js';
import type { JobsOptions } from '../job/options.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import { decode } from '../job/payload.js';
import type { JobRecord } from '../job/record.js';
import type { JobHome, JobProgress } from './home.js';

const UNREAD = Symbol('unread');

export class Card {
  discarded = false;
  /** The run that this handle stands for was settled by it. */
  ended = false;
  #data: unknown = UNREAD;
  #opts: JobsOptions | undefined;
  #progress: JobProgress | undefined;
  #returnvalue: unknown = UNREAD;
  #stacktrace: string[] | undefined;

  constructor(
    readonly home: JobHome,
    public record: JobRecord,
    public lock: JobLock,
    /** The token that the user gave to `getNextJob`; it stands for the real one. */
    public alias: string | undefined,
  ) {}

  get data(): unknown {
    if (this.#data === UNREAD) this.#data = decode(this.record.data);
    return this.#data;
  }

  set data(value: unknown) {
    this.#data = value;
  }

  get opts(): JobsOptions {
    const { opts } = this.record;
    // Most jobs have none, and every run looks at them: reading '{}' was half of the 165 ns from record to outcome.
    this.#opts ??= opts === '{}' ? { attempts: 0 } : { attempts: 0, ...(decode(opts) as JobsOptions) };
    return this.#opts;
  }

  get progress(): JobProgress {
    const { progress } = this.record;
    this.#progress ??= progress === undefined ? 0 : (decode(progress) as JobProgress);
    return this.#progress;
  }

  set progress(value: JobProgress) {
    this.#progress = value;
  }

  get returnvalue(): unknown {
    const { returnvalue } = this.record;
    if (this.#returnvalue === UNREAD) this.#returnvalue = returnvalue === undefined ? null : decode(returnvalue);
    return this.#returnvalue;
  }

  set returnvalue(value: unknown) {
    this.#returnvalue = value;
  }

  get stacktrace(): string[] {
    const { stacktrace } = this.record;
    this.#stacktrace ??= stacktrace === undefined ? [] : (decode(stacktrace) as string[]);
    return this.#stacktrace;
  }

  /**
   * The token that this handle's writes carry. It stays when the lock was lost, and after the run was settled: a handler that goes on
   * regardless must not pass for an outsider, whose writes need no token.
   */
  get token(): string | undefined {
    return this.lock.token === '' ? undefined : this.lock.token;
  }

  /** The token that an owner's move sends to the store. A foreign one goes as it is: the store refuses it. */
  tokenFor(given: string | undefined, action: string): string {
    const token = given === undefined || given === this.alias ? (this.token ?? given) : given;
    if (typeof token === 'string' && token !== '') return token;
    const hint = 'Only the owner of its lock may do that: take the job from a worker, or pass the token.';
    throw new HoldfastError(
      'NO_TOKEN',
      `${action} of job ${this.record.id} of queue "${this.home.name}" needs a token. ${hint}`,
      this.#facts,
    );
  }

  /** Throws unless the store did it. */
  accept(status: SettleStatus, action: string): void {
    if (status === 'done') return;
    const subject = `${action} of job ${this.record.id} of queue "${this.home.name}" changed nothing`;
    if (status === 'missing') throw new HoldfastError('JOB_MISSING', `${subject}: the job does not exist any more.`, this.#facts);
    const why = this.ended
      ? 'this run of it has ended already'
      : 'its lock is no longer ours, and another worker may be running it';
    throw new HoldfastError('LOCK_LOST', `${subject}: ${why}. Stop working on it; its new owner has the say.`, this.#facts);
  }

  missing(action: string): HoldfastError {
    const { record, home } = this;
    return new HoldfastError(
      'JOB_MISSING',
      `${action}: job ${record.id} of queue "${home.name}" does not exist (any more).`,
      this.#facts,
    );
  }

  /** Its lock was taken by hand: from here on this handle is its owner's, and shows the job as it was then. */
  taken(record: JobRecord, lock: JobLock): void {
    this.record = record;
    this.lock = lock;
    this.alias = undefined;
    this.ended = false;
    this.#data = UNREAD;
    this.#opts = undefined;
    this.#progress = undefined;
    this.#returnvalue = UNREAD;
    this.#stacktrace = undefined;
  }

  /** Makes the fields say what the store has accepted. Times are this host's: the store's come with the next look at the job. */
  settled(outcome: Outcome): void {
    const { record } = this;
    this.ended = true;
    switch (outcome.kind) {
      case 'completed':
        record.returnvalue = outcome.value;
        this.#returnvalue = UNREAD;
        record.state = 'completed';
        break;
      case 'failed':
      case 'retry':
        record.failedReason = outcome.reason;
        record.stacktrace = outcome.stacktrace;
        this.#stacktrace = undefined;
        record.state = outcome.kind === 'failed' ? 'failed' : 'waiting';
        break;
      case 'delay':
      case 'release':
      case 'return':
        record.state = 'waiting';
    }
    if (record.state === 'waiting') {
      record.delay = 'delayMs' in outcome ? outcome.delayMs : 0;
      if (record.delay > 0) record.state = 'delayed';
    } else {
      record.finishedOn = Date.now();
    }
    if (outcome.kind === 'completed' || outcome.kind === 'failed' || outcome.kind === 'retry') record.attemptsMade += 1;
  }

  /** Back to waiting after it had finished. */
  retried(reset: { resetAttemptsMade: boolean; resetAttemptsStarted: boolean }): void {
    const { record } = this;
    delete record.failedReason;
    delete record.finishedOn;
    delete record.processedOn;
    delete record.returnvalue;
    this.#returnvalue = UNREAD;
    record.state = 'waiting';
    if (reset.resetAttemptsMade) record.attemptsMade = 0;
    if (reset.resetAttemptsStarted) record.attemptsStarted = 0;
  }

  get #facts(): { jobId: string; queue: string } {
    return { jobId: this.record.id, queue: this.home.name };
  }
}
