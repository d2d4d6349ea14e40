// Reads the event log of a queue page by page from a fixed place on, woken by the store, with a look of its own from time to time
// because a wake-up can be lost. An outage only pauses it: it goes on from the event after the last one that it has handed out.
import { toError } from '../errors.js';
import type { Store, StoredEvent } from '../store/contract/index.js';
import { OutageReport } from '../runtime/outage-report.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import { LogTail } from './log-tail.js';

export interface LogReaderOptions {
  queue: string;
  open(): Promise<Store>;
  /** Read on after this event; undefined: from now on. */
  after: number | undefined;
  /** How long to trust that no wake-up was lost. */
  pollMs: number;
  onEvent(event: StoredEvent): void;
  /** So many events after the event `from` were cut from the log before they were read. */
  onMissed(missed: number, from: number): void;
  /** Whether a value that was too large for its event shall be fetched from the job. */
  wants(event: StoredEvent): boolean;
  /** A read failed; told once for each outage and reason. */
  onError(error: Error): void;
  /** The log can be read again, after an outage of which `onError` was told. */
  onRecovered(outageMs: number): void;
}

const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 2000;

export class LogReader {
  readonly #options: LogReaderOptions;
  readonly #outage: OutageReport;
  #position: number | undefined;
  #hasRead = false;
  #fixing: Promise<LogTail> | undefined;
  #leave: (() => void) | undefined;
  #stopped = false;
  /** Wake-ups of the store before the last read. */
  #wakeUps = 0;
  #endSleep: (() => void) | undefined;

  constructor(options: LogReaderOptions) {
    this.#options = options;
    this.#outage = new OutageReport(options.onError, options.onRecovered);
    this.#position = options.after;
  }

  /** Resolves when the place to read from is fixed: nothing that happens afterwards is missed. After a failure, tries again. */
  fix(): Promise<LogTail> {
    this.#fixing ??= this.#open().catch((error: unknown) => {
      this.#fixing = undefined;
      throw error;
    });
    return this.#fixing;
  }

  /** Until `stop`. */
  async run(): Promise<void> {
    let pause = 0;
    while (!this.#stopped) {
      const page = await this.#read();
      if (page === 'failed') {
        pause = Math.min(Math.max(pause * 2, FIRST_PAUSE_MS), LAST_PAUSE_MS);
        await this.#sleep(pause, false);
        continue;
      }
      pause = 0;
      if (page === 'end') await this.#sleep(this.#options.pollMs, true);
    }
  }

  /** Nothing is handed out after it. Idempotent. */
  stop(): void {
    this.#stopped = true;
    this.#leave?.();
    this.#endSleep?.();
  }

  async #open(): Promise<LogTail> {
    const { queue, open } = this.#options;
    const tail = LogTail.of(await open(), queue);
    this.#position ??= await tail.end();
    if (!this.#stopped) this.#leave ??= tail.join();
    return tail;
  }

  async #read(): Promise<'more' | 'end' | 'failed'> {
    const { onEvent, onMissed, wants } = this.#options;
    try {
      const tail = await this.fix();
      this.#wakeUps = tail.wakeUps;
      const from = this.#position ?? 0;
      const { events, last, more, missed } = await tail.after(from);
      if (!this.#stopped) this.#outage.answered();
      // A store that cuts its log keeps the newest event: an empty log was emptied on purpose. A listener that begins with the oldest
      // event that is kept has missed nothing.
      const isBehind = missed !== undefined && events.length > 0 && (this.#hasRead || this.#options.after !== 0);
      if (isBehind && !this.#stopped) onMissed(missed, from);
      this.#hasRead = true;
      for (const event of events) {
        if (event.large === 1 && wants(event)) await tail.fillIn(event);
        if (this.#stopped) return 'end';
        this.#position = event.id;
        onEvent(event);
      }
      this.#position = last;
      return more === true ? 'more' : 'end';
    } catch (thrown) {
      // What could not be opened has been told by the one who opens.
      if (!this.#stopped && this.#fixing !== undefined) this.#outage.failed(toError(thrown));
      return 'failed';
    }
  }

  /** `wakeable`: a wake-up of the store ends it; stopping always does. */
  async #sleep(ms: number, wakeable: boolean): Promise<void> {
    // A store that cannot be opened has no log to share.
    const tail = await this.#fixing?.catch(() => undefined);
    if (this.#stopped || (wakeable && tail?.wakeUps !== this.#wakeUps)) return;
    const { slept, end } = tail?.sleep(ms, wakeable) ?? sleepAlone(ms);
    this.#endSleep = end;
    await slept;
    this.#endSleep = undefined;
  }
}

function sleepAlone(ms: number): { slept: Promise<void>; end(): void } {
  let end!: () => void;
  const slept = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    end = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  return { slept, end };
}
