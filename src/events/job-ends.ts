// Reads from a queue's event log how removed jobs ended. All callers in this process share one pass over the log, and the next pass reads
// only new events. It remembers as much as the log itself keeps.
import type { JobEnd } from '../handle/waiting.js';
import { decode } from '../job/payload.js';
import { EVENTS_BYTES_KEPT } from '../store/budget.js';
import { EVENTS_KEPT, type EventsReply, type StoredEvent } from '../store/contract/index.js';

interface LogPages {
  end(): Promise<number>;
  after(position: number): Promise<EventsReply>;
}

/** More than the log has, so that no event is dropped here that the log still has. */
const MOST_BYTES = 2 * EVENTS_BYTES_KEPT;
/** Estimated size of a map entry and an event without text. */
const BARE_BYTES = 100;

export class JobEnds {
  readonly #log: LogPages;
  /** Keyed by job id, in the order of the log: the event that ended the job, or that added it. */
  readonly #ends = new Map<string, StoredEvent>();
  #bytes = 0;
  /** True if the log had older events that are not here. */
  #isCut = false;
  #position = 0;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(log: LogPages) {
    this.#log = log;
  }

  /** Returns the end of a job that is no longer in the store; undefined if the log shows that the job has not ended. */
  async of(jobId: string): Promise<JobEnd | undefined> {
    await this.#readOn();
    const event = this.#ends.get(jobId);
    if (event === undefined) return this.#isCut ? { kind: 'end gone' } : undefined;
    if (event.name === 'failed') return { kind: 'failed', reason: String(event['failedReason'] ?? '') };
    if (event.name !== 'completed') return undefined;
    // The job is removed, so its result cannot be read from it.
    if (event.large === 1 && event['returnvalue'] === undefined) return { kind: 'result gone' };
    return { kind: 'completed', value: decode(String(event['returnvalue'] ?? 'null')) };
  }

  /** A pass under way may lack the requested end, because it began earlier. So callers share the pass that begins next. */
  #readOn(): Promise<void> {
    this.#next ??= this.#readAfter(this.#reading);
    return this.#next;
  }

  async #readAfter(before: Promise<void> | undefined): Promise<void> {
    await before?.catch(() => undefined);
    this.#reading = this.#next;
    this.#next = undefined;
    const end = await this.#log.end();
    while (this.#position < end) {
      const { events, last, missed } = await this.#log.after(this.#position);
      if (missed !== undefined) this.#forget();
      for (const event of events) this.#note(event);
      if (last <= this.#position) return;
      this.#position = last;
    }
  }

  #note(event: StoredEvent): void {
    const { name, jobId = '' } = event;
    // An id that is added again belongs to a new job.
    if (name !== 'added' && name !== 'completed' && name !== 'failed') return;
    this.#drop(jobId);
    this.#ends.set(jobId, event);
    this.#bytes += bytesOf(event);
    for (const oldest of this.#ends.keys()) {
      if (this.#ends.size <= EVENTS_KEPT && this.#bytes <= MOST_BYTES) break;
      this.#isCut = true;
      if (oldest !== jobId) this.#drop(oldest);
    }
  }

  /** Drops everything, because some events were cut from the log before they were read here: ids may have been used again in between. */
  #forget(): void {
    this.#isCut = true;
    this.#ends.clear();
    this.#bytes = 0;
  }

  #drop(jobId: string): void {
    const event = this.#ends.get(jobId);
    if (event === undefined) return;
    this.#ends.delete(jobId);
    this.#bytes -= bytesOf(event);
  }
}

function bytesOf(event: StoredEvent): number {
  return BARE_BYTES + String(event['returnvalue'] ?? event['failedReason'] ?? '').length;
}
