// Reads the event log of a queue page by page from a fixed place on, woken by the store, with a look of its own from time to time
// because a wake-up can be lost. An outage only pauses it: it goes on from the event after the last one that it has handed out.
import { toError } from '../errors.js';
import type { Store, StoredEvent } from '../store/contract.js';
import { clearTimeout, setImmediate, setTimeout } from '../runtime/timers.js';

export interface LogReaderOptions {
  queue: string;
  open(): Promise<Store>;
  /** Read on after this event; undefined: from now on. */
  after: number | undefined;
  /** How long to trust that no wake-up was lost. */
  pollMs: number;
  onEvent(event: StoredEvent): void;
  /** Whether a value that was too large for its event shall be fetched from the job. */
  wants(event: StoredEvent): boolean;
  /** A read failed; told once for each outage. */
  onError(error: Error): void;
}

const PAGE = 500;
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 2000;

export class LogReader {
  readonly #options: LogReaderOptions;
  #position: number | undefined;
  #fixing: Promise<Store> | undefined;
  #unwatch: (() => void) | undefined;
  #stopped = false;
  #woken = false;
  #wake: (() => void) | undefined;

  constructor(options: LogReaderOptions) {
    this.#options = options;
    this.#position = options.after;
  }

  /** Resolves when the place to read from is fixed: nothing that happens afterwards is missed. After a failure, tries again. */
  fix(): Promise<Store> {
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
      const page = await this.#read(pause > 0);
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
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#wake?.();
  }

  async #open(): Promise<Store> {
    const { queue, open } = this.#options;
    const store = await open();
    this.#position ??= (await store.events(queue, undefined, 1)).last;
    if (!this.#stopped) this.#unwatch = store.watch(queue, this.#onWake, 'events');
    return store;
  }

  readonly #onWake = (): void => {
    if (this.#woken) return;
    this.#woken = true;
    // At the end of this turn: what a busy queue tells meanwhile is read with it.
    setImmediate(() => this.#wake?.());
  };

  async #read(inOutage: boolean): Promise<'more' | 'end' | 'failed'> {
    const { queue, onEvent, onError } = this.#options;
    this.#woken = false;
    try {
      const store = await this.fix();
      const { events, last, more } = await store.events(queue, this.#position, PAGE);
      for (const event of events) {
        if (event.large === 1 && this.#options.wants(event)) await fillIn(event, store, queue);
        if (this.#stopped) return 'end';
        this.#position = event.id;
        onEvent(event);
      }
      this.#position = last;
      return more === true || events.length === PAGE ? 'more' : 'end';
    } catch (thrown) {
      // What could not be opened has been told by the one who opens.
      if (!this.#stopped && !inOutage && this.#fixing !== undefined) onError(toError(thrown));
      return 'failed';
    }
  }

  /** `wakeable`: a wake-up of the store ends it; stopping always does. */
  async #sleep(ms: number, wakeable: boolean): Promise<void> {
    if (this.#stopped || (wakeable && this.#woken)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        if (!wakeable && !this.#stopped) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}

/** A job that was removed or run again since has lost the value; the event then has none. */
async function fillIn(event: StoredEvent, store: Store, queue: string): Promise<void> {
  const [job] = await store.jobs(queue, [event.jobId ?? '']);
  if (event.name === 'completed' && job?.state === 'completed') event['returnvalue'] = job.returnvalue;
  if (event.name === 'progress') event['data'] = job?.progress;
}
