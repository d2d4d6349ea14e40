// The events of QueueEvents: names and arguments as users of BullMQ know them, made from the store's event log.
import type { JobProgress } from '../handle/job-context.js';
import { type LostBy, readLostBy } from '../job/lost-by.js';
import { decode } from '../job/payload.js';
import type { Any } from '../job/typing.js';
import type { EventName, StoredEvent } from '../store/contract/index.js';

type StoredEvents = {
  active: [args: { jobId: string; prev?: string }, id: string];
  added: [args: { jobId: string; name: string }, id: string];
  cleaned: [args: { count: string }, id: string];
  /** `valueGone`: the result is no longer stored, and `returnvalue` is undefined. */
  completed: [args: { jobId: string; returnvalue: Any; prev?: string; valueGone?: true }, id: string];
  delayed: [args: { jobId: string; delay: number }, id: string];
  drained: [id: string];
  duplicated: [args: { jobId: string }, id: string];
  deduplicated: [args: { jobId: string; deduplicationId: string; deduplicatedJobId: string }, id: string];
  error: [error: Error];
  /** The log can be read again, after an outage that was emitted as `error`. `outageMs`: its length. */
  recovered: [outageMs: number];
  /** For programs of BullMQ that listen to it. Never emitted: `error` and `recovered` say when a store cannot be reached, whichever it is. */
  'ioredis:close': [];
  /** `lostBy`: for a job that stalled too often, the process that lost it and how that was found. */
  failed: [args: { jobId: string; failedReason: string; prev?: string; lostBy?: LostBy }, id: string];
  paused: [args: object, id: string];
  progress: [args: { jobId: string; data: JobProgress; valueGone?: true }, id: string];
  removed: [args: { jobId: string; prev?: string }, id: string];
  resumed: [args: object, id: string];
  'retries-exhausted': [args: { jobId: string; attemptsMade: number }, id: string];
  /** `lostBy`: the process that died or lost its lock, and how that was found. */
  stalled: [args: { jobId: string; lostBy?: LostBy }, id: string];
  waiting: [args: { jobId: string; prev?: string; failedReason?: string }, id: string];
  'waiting-children': [args: { jobId: string; prev?: string }, id: string];
};

type OfJobs = { [E in keyof StoredEvents as StoredEvents[E] extends [{ jobId: string }, string] ? E : never]: StoredEvents[E] };

/** Events about a job are also emitted as `<event>:<jobId>`. */
export type QueueEventsMap = StoredEvents & { [E in keyof OfJobs as `${E}:${string}`]: OfJobs[E] };

export type QueueEventsListener = { [E in keyof QueueEventsMap]: (...args: QueueEventsMap[E]) => void };

/** The field of an event that is JSON text. */
const ENCODED: Readonly<Record<string, string>> = { completed: 'returnvalue', progress: 'data' };
/** Events whose `lostBy` field, if present, is JSON text. */
const LOST: readonly string[] = ['stalled', 'failed'] satisfies EventName[];

export function argumentsOf({ id, name, large, ...fields }: StoredEvent): QueueEventsMap[EventName] {
  if (name === 'drained') return [String(id)];
  // Stores use `jobName`, because `name` is the name of the event.
  if (name === 'added') return [{ jobId: fields.jobId ?? '', name: String(fields['jobName'] ?? '') }, String(id)];
  // The count is a string, as in BullMQ's log.
  if (name === 'cleaned') return [{ count: String(fields['count'] ?? 0) }, String(id)];
  // An event of a user: the only one with `args`.
  if (fields['args'] !== undefined) return [decode(String(fields['args'])), String(id)] as unknown as QueueEventsMap[EventName];
  const { lostBy } = fields;
  if (lostBy !== undefined && LOST.includes(name))
    return [{ ...fields, lostBy: readLostBy(lostBy) }, String(id)] as unknown as QueueEventsMap[EventName];
  const encoded = ENCODED[name];
  const args = encoded === undefined ? fields : { ...fields, ...valueOf(encoded, fields[encoded], large === 1) };
  return [args, String(id)] as unknown as QueueEventsMap[EventName];
}

function valueOf(field: string, json: string | number | undefined, wasLarge: boolean): Record<string, unknown> {
  if (json === undefined && wasLarge) return { [field]: undefined, valueGone: true };
  return { [field]: decode(String(json ?? 'null')) };
}
