// Reads the event log of a queue page by page from a fixed position on. The store wakes it; it also polls, because a wake-up can be lost.
// An outage only pauses it: it continues after the last event that it passed on.
import { toError } from '../errors.js';
import type { Store, StoredEvent } from '../store/contract/index.js';
import { systemClock } from '../runtime/clock.js';
import { OutageReport } from '../runtime/outage-report.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import { LogTail } from './log-tail.js';

export interface LogReaderOptions {
  queue: string;
  open(): Promise<Store>;
  /** Reads on after the event with this id. Undefined: from now on. */
  after: number | undefined;
  /** The longest wait for a wake-up before the next read, in ms. */
  pollMs: number;
  onEvent(event: StoredEvent): void;
  /** `missed` events after the event `from` were cut from the log before they were read. */
  onMissed(missed: number, from: number): void;
  /** Returns true if a value that was too large for its event must be fetched from the job. */
  wants(event: StoredEvent): boolean;
  /** A read failed. Reported once per outage and reason. */
  onError(error: Error): void;
  /** The log can be read again, after an outage that was reported to `onError`. */
  onRecovered(outageMs: number): void;
}

export class LogReader {
  readonly #options: LogReaderOptions;
  readonly #outage: OutageReport;
  #position: number | undefined;
  #hasRead = false;
  #fixing: Promise<LogTail> | undefined;
  #leave: (() => void) | undefined;
  #stopped = false;
  /** The number of wake-ups of the store before the last read. */
  #wakeUps = 0;
  #endSleep: (() => void) | undefined;

  constructor(options: LogReaderOptions) {
    this.#options = options;
    this.#outage = new OutageReport(options.onError, options.onRecovered);
    this.#position = options.after;
  }

  /** Resolves when the start position is fixed: no later event is missed. After a failure, the next call tries again. */
  fix(): Promise<LogTail> {
    this.#fixing ??= this.#open().catch((error: unknown) => {
      this.#fixing = undefined;
      throw error;
    });
    return this.#fixing;
  }

  /** Reads until `stop` is called. */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.#stopped) {
      const page = await this.#read();
      if (page === 'failed') {
        failures += 1;
        await this.#sleep(retryPauseMs(failures), false);
        continue;
      }
      failures = 0;
      if (page === 'end') await this.#sleep(this.#options.pollMs, true);
    }
  }

  /** Stops reading. No event is passed on after it. Idempotent. */
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
    const askedAt = systemClock.monotonic();
    try {
      const tail = await this.fix();
      this.#wakeUps = tail.wakeUps;
      const from = this.#position ?? 0;
      const { events, last, more, missed } = await tail.after(from);
      if (!this.#stopped) this.#outage.answered();
      // A store that cuts its log keeps the newest event, so an empty log was emptied on purpose. A listener that starts with the oldest
      // stored event has missed nothing.
      const isBehind = missed !== undefined && events.length > 0 && (this.#hasRead || this.#options.after !== 0);
      if (isBehind && !this.#stopped) onMissed(missed, from);
      this.#hasRead = true;
      const lacksValue = (event: StoredEvent): boolean => event.large === 1 && wants(event);
      for (const [index, event] of events.entries()) {
        if (lacksValue(event)) await tail.fillIn(event, () => events.slice(index + 1).filter(lacksValue));
        if (this.#stopped) return 'end';
        this.#position = event.id;
        onEvent(event);
      }
      this.#position = last;
      return more === true ? 'more' : 'end';
    } catch (thrown) {
      // If opening failed, the StoreAccess that opens the store has already reported it.
      if (!this.#stopped && this.#fixing !== undefined) this.#outage.failed(toError(thrown), askedAt);
      return 'failed';
    }
  }

  /** `wakeable`: a wake-up of the store ends the sleep. `stop` always ends it. */
  async #sleep(ms: number, wakeable: boolean): Promise<void> {
    // If the store cannot be opened, there is no log tail to share.
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
