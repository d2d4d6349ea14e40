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

/** A map entry and an event without a text. */
const BARE_BYTES = 100;

export class JobEnds {
  readonly #log: LogPages;
  /** By job id, in the order of the log. */
  readonly #ends = new Map<string, StoredEvent>();
  #bytes = 0;
  #position = 0;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(log: LogPages) {
    this.#log = log;
  }

  /** The end of a job that is not in the store any more; undefined if the log has none. */
  async of(jobId: string): Promise<JobEnd | undefined> {
    await this.#readOn();
    const event = this.#ends.get(jobId);
    if (event === undefined) return undefined;
    if (event.name === 'failed') return { kind: 'failed', reason: String(event['failedReason'] ?? '') };
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
      const { events, last } = await this.#log.after(this.#position);
      for (const event of events) this.#note(event);
      if (last <= this.#position) return;
      this.#position = last;
    }
  }

  #note(event: StoredEvent): void {
    const { name, jobId = '' } = event;
    // The id is used again: what came before is the end of another job.
    if (name === 'added') this.#drop(jobId);
    if (name !== 'completed' && name !== 'failed') return;
    this.#drop(jobId);
    this.#ends.set(jobId, event);
    this.#bytes += bytesOf(event);
    for (const oldest of this.#ends.keys()) {
      if (this.#ends.size <= EVENTS_KEPT && this.#bytes <= EVENTS_BYTES_KEPT) break;
      if (oldest !== jobId) this.#drop(oldest);
    }
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
