// How jobs ended that are gone, as the log of their queue says. All callers in this process share one pass over the log, and the next pass
// reads only what is new. It remembers as much as the log itself keeps.
import type { JobEnd } from '../handle/waiting.js';
import { decode } from '../job/payload.js';
import { EVENTS_BYTES_KEPT } from '../store/budget.js';
import { EVENTS_KEPT, type EventsReply, type StoredEvent } from '../store/contract/index.js';

interface LogPages {
  end(): Promise<number>;
  after(position: number): Promise<EventsReply>;
}

/** More than the log has, so that nothing is forgotten here that is still there. */
const MOST_BYTES = 2 * EVENTS_BYTES_KEPT;
/** A map entry and an event without a text. */
const BARE_BYTES = 100;

export class JobEnds {
  readonly #log: LogPages;
  /** By job id, in the order of the log: the end of the job, or that it was added. */
  readonly #ends = new Map<string, StoredEvent>();
  #bytes = 0;
  /** The log had more events, which are not here. */
  #isCut = false;
  #position = 0;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(log: LogPages) {
    this.#log = log;
  }

  /** The end of a job that is not in the store any more; undefined if the log shows that it has none. */
  async of(jobId: string): Promise<JobEnd | undefined> {
    await this.#readOn();
    const event = this.#ends.get(jobId);
    if (event === undefined) return this.#isCut ? { kind: 'end gone' } : undefined;
    if (event.name === 'failed') return { kind: 'failed', reason: String(event['failedReason'] ?? '') };
    if (event.name !== 'completed') return undefined;
    // No job is left that has it.
    if (event.large === 1 && event['returnvalue'] === undefined) return { kind: 'result gone' };
    return { kind: 'completed', value: decode(String(event['returnvalue'] ?? 'null')) };
  }

  /** A pass that has begun may lack the end that its caller asks for, so callers share the one that begins next. */
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
    // An id that is added again is that of another job.
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

  /** Some events were cut before they were read here: ids may have been used again in between. */
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
