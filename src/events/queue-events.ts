// QueueEvents emits the events of a queue, from all processes, in the order in which the store recorded them. It only reads. A listener
// that was away continues after the last id that it saw (`lastEventId`).
import { HoldfastError, toError } from '../errors.js';
import { StoreAccess } from '../handle/access.js';
import type { FinishSource, JobEnd } from '../handle/waiting.js';
import { queueNames } from '../job/names.js';
import { MAX_TIMER_MS, checkBoolean, checkInteger, invalidOption } from '../runtime/check.js';
import { ClosingEmitter } from '../runtime/emitter.js';
import { OptionNames } from '../runtime/option-names.js';
import { EVENTS_BYTES_KEPT } from '../store/budget.js';
import { EVENTS_KEPT, type StoredEvent } from '../store/contract/index.js';
import { BASE_NAMES, BASE_IGNORED, type QueueBaseOptions } from '../store/base-options.js';
import { leaseStore } from '../store/open.js';
import { argumentsOf, type QueueEventsMap } from './event-map.js';
import { Presence } from '../lock/presence.js';
import { JobWatch } from './job-watch.js';
import { LogReader } from './log-reader.js';

export interface QueueEventsOptions extends QueueBaseOptions {
  /** true (default): starts reading at once. false: starts when `run` is called. */
  autorun?: boolean;
  /** '$' (default): from now on. '0': from the oldest stored event. Otherwise: after the event with this id. */
  lastEventId?: string;
  /** The longest wait for a wake-up of the store before the next read, in ms. Default 1000. */
  blockingTimeout?: number;
  /**
   * Shows this listener in `queue.getQueueEvents()`. It then has a session in the store, which is renewed every ten seconds. Default false:
   * a listener only reads.
   */
  listed?: boolean;
}

/** The owner's name of the sessions of listed listeners. */
export const LISTENER_NAME = 'holdfast:queue-events';

const POLL_MS = 1000;

const NAMES = new OptionNames<QueueEventsOptions>({
  of: 'queue events',
  known: { ...BASE_NAMES, autorun: true, lastEventId: true, blockingTimeout: true, listed: true },
  without: ['name'],
  ignored: BASE_IGNORED,
});

export class QueueEvents extends ClosingEmitter<QueueEventsMap> implements FinishSource {
  readonly name: string;
  /** `prefix:name`. */
  readonly qualifiedName: string;
  readonly stored: string;
  readonly opts: Readonly<QueueEventsOptions>;
  readonly #access: StoreAccess;
  readonly #reader: LogReader;
  readonly #presence: Presence | undefined;
  readonly #jobs = new JobWatch();
  #running: Promise<void> | undefined;

  constructor(name: string, opts: QueueEventsOptions = {}) {
    super();
    if (typeof opts !== 'object' || opts === null) throw invalidOption('opts', opts, 'an object with options');
    NAMES.check(opts);
    const names = queueNames(name, opts.prefix);
    this.name = names.name;
    this.qualifiedName = names.qualified;
    this.stored = names.stored;
    this.opts = opts;
    const { lastEventId = '$', blockingTimeout = POLL_MS, autorun = true, listed = false } = opts;
    const after = positionOf(lastEventId);
    const pollMs = checkInteger('blockingTimeout', blockingTimeout, { min: 1, max: MAX_TIMER_MS });
    checkBoolean('autorun', autorun);
    checkBoolean('listed', listed);
    const onError = (error: Error): void => void this.emit('error', error);
    const lease = leaseStore(opts.connection, onError);
    this.#access = new StoreAccess(`QueueEvents "${name}"`, lease, onError);
    this.#presence = listed ? new Presence({ queue: names.stored, name: LISTENER_NAME, lease, onError }) : undefined;
    const open = () => this.#access.open();
    const wants = ({ name: event, jobId = '' }: StoredEvent) =>
      this.listenerCount(event) > 0 || this.listenerCount(`${event}:${jobId}`) > 0 || this.#jobs.isWatched(jobId);
    this.#reader = new LogReader({
      queue: names.stored,
      open,
      after,
      pollMs,
      onEvent: (event) => this.#emitStored(event),
      onMissed: (missed, from) => onError(missedEvents(name, missed, from)),
      wants,
      onError,
      onRecovered: (outageMs) => void this.emit('recovered', outageMs),
    });
    if (autorun) this.#running = this.#read();
  }

  get closing(): Promise<void> | undefined {
    return this.#access.closing;
  }

  /** Reads until `close`. */
  async run(): Promise<void> {
    if (this.closing !== undefined) throw this.#access.closed();
    if (this.#running !== undefined) {
      throw new HoldfastError(
        'ALREADY_RUNNING',
        `QueueEvents "${this.name}" is running already. Call run() only with autorun: false, and once.`,
      );
    }
    this.#running = this.#read();
    await this.#running;
  }

  /** Resolves when the start position is fixed: every later event will be emitted. */
  async waitUntilReady(): Promise<void> {
    await this.#access.ready();
    await this.#reader.fix();
    if (this.#running !== undefined) await this.#presence?.opened();
  }

  override on<K extends keyof QueueEventsMap>(event: K, listener: (...args: QueueEventsMap[K]) => void): this;
  /** For events of a QueueEventsProducer: `L` maps their names to listeners. */
  override on<L extends object, K extends keyof L & string = keyof L & string>(event: K, listener: L[K]): this;
  override on(event: string, listener: never): this {
    return super.on(event as keyof QueueEventsMap, listener);
  }

  override once<K extends keyof QueueEventsMap>(event: K, listener: (...args: QueueEventsMap[K]) => void): this;
  override once<L extends object, K extends keyof L & string = keyof L & string>(event: K, listener: L[K]): this;
  override once(event: string, listener: never): this {
    return super.once(event as keyof QueueEventsMap, listener);
  }

  override off<K extends keyof QueueEventsMap>(event: K, listener: (...args: QueueEventsMap[K]) => void): this;
  override off<L extends object, K extends keyof L & string = keyof L & string>(event: K, listener: L[K]): this;
  override off(event: string, listener: never): this {
    return super.off(event as keyof QueueEventsMap, listener);
  }

  /** For `job.waitUntilFinished`. */
  watchJob(jobId: string, listener: (end: JobEnd) => void): () => void {
    if (this.closing !== undefined) throw this.#access.closed();
    return this.#jobs.watch(jobId, listener);
  }

  /** For `job.waitUntilFinished`. */
  async endInLog(jobId: string): Promise<JobEnd | undefined> {
    return (await this.#reader.fix()).ends.of(jobId);
  }

  close(): Promise<void> {
    return this.#access.close(async () => {
      // A read that hangs is not awaited; its events are dropped.
      this.#reader.stop();
      this.#jobs.close();
      await this.#presence?.close();
    });
  }

  #read(): Promise<void> {
    void this.#presence?.opened();
    return this.#reader.run();
  }

  #emitStored(event: StoredEvent): void {
    try {
      const args = argumentsOf(event);
      this.#jobs.emitStored(event.name, args);
      const emit = this.emit as (name: string, ...args: unknown[]) => boolean;
      emit.call(this, event.name, ...args);
      const jobId = jobIdOf(event, args[0]);
      if (jobId !== undefined) emit.call(this, `${event.name}:${jobId}`, ...args);
    } catch (thrown) {
      // An event that cannot be decoded must not keep back the others.
      this.emit('error', toError(thrown));
    }
  }
}

/** Events of users name their job, if they have one, in their fields. */
function jobIdOf({ jobId, args }: StoredEvent, first: unknown): string | undefined {
  if (args === undefined || typeof first !== 'object' || first === null) return jobId;
  const named = (first as { jobId?: unknown }).jobId;
  return typeof named === 'string' || typeof named === 'number' ? String(named) : undefined;
}

function missedEvents(name: string, missed: number, from: number): HoldfastError {
  return new HoldfastError(
    'EVENTS_MISSED',
    `QueueEvents "${name}" missed ${missed} events after event ${from}: the store had dropped them before they were read. ` +
      `A queue keeps its newest ${EVENTS_KEPT} events, and about ${EVENTS_BYTES_KEPT / 2 ** 20} MiB of them. Look at the jobs that you ` +
      'follow (queue.getJob), and do less in the listeners, or listen in more processes, if this comes often.',
    { queue: name },
  );
}

function positionOf(lastEventId: unknown): number | undefined {
  if (lastEventId === '$') return undefined;
  // Redis users write the start of a stream like this.
  if (lastEventId === '0-0') return 0;
  const id = typeof lastEventId === 'string' && /^\d+$/.test(lastEventId) ? Number(lastEventId) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw invalidOption('lastEventId', lastEventId, "'$', '0' or the id of an event");
  return id;
}
