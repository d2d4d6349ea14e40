// Rules of deduplication: when an entry counts, and which job owns it.
import { type Deduplication, entryMs } from '../../../job/deduplication.js';
import type { NewJob } from '../../../job/record.js';
import { MARK } from '../../marks.js';
import { Entry, NEVER } from './entries.js';
import type { QueueState, StoredJob } from './queue-state.js';

/**
 * Returns the entry of a deduplication id if it counts. An entry without an end does not count when its owner is gone or has
 * finished.
 */
export function countingEntry({ entries, jobs }: QueueState, id: string, now: number): Entry | undefined {
  const entry = entries.get(id);
  if (entry === undefined) return undefined;
  if (entry.at !== NEVER) return entry.at > now ? entry : undefined;
  const owner = jobs.get(entry.owner);
  return owner === undefined || owner.finishedOn !== undefined ? undefined : entry;
}

/** Makes a job the owner of a new entry. */
export function ownEntry({ entries }: QueueState, { id, ...mode }: Deduplication, owner: string, now: number): void {
  entries.set(new Entry(id, owner), now + (entryMs({ id, ...mode }) ?? NEVER));
}

export function extendEntry({ entries }: QueueState, entry: Entry, mode: Deduplication, now: number): void {
  const ms = entryMs(mode);
  if (mode.extend === true && ms !== undefined && entry.draft === undefined) entries.set(entry, now + ms);
}

/** Keeps a job as the draft of the entry. The draft must not be lost before the owner ends, so the entry loses its own end. */
export function keepDraft({ entries }: QueueState, entry: Entry, job: NewJob): void {
  entry.draft = { ...job };
  entries.set(entry, NEVER);
}

/** Returns the entry that a job owns. */
export function ownedEntry({ entries }: QueueState, { id, marks, extras }: StoredJob): Entry | undefined {
  if ((marks & MARK.unique) === 0 || extras === null) return undefined;
  const entry = entries.get(extras.deduplicationId ?? '');
  return entry?.owner === id ? entry : undefined;
}

/** Makes a job that is retried the owner of its entry again, unless an entry counts. */
export function ownAgain(queue: QueueState, { id, marks, extras }: StoredJob, now: number): void {
  if ((marks & MARK.unique) === 0 || extras === null) return;
  const { deduplicationId = '' } = extras;
  if (countingEntry(queue, deduplicationId, now) === undefined) ownEntry(queue, { id: deduplicationId }, id, now);
}
