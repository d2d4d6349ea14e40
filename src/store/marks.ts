// Marks and extras of a job. Marks are bits: each says that the store has more to do when the job leaves a state. Extras are the
// fields that few jobs have. An engine stores both without knowing the list of fields, and reads a field only if its bit is set.
import type { JobRecord, NewJob } from '../job/record.js';

export const MARK = {
  /** The job belongs to a group. */
  key: 1,
  /** The job has a deduplication id, so it may own the entry of that id. */
  unique: 8,
  /** The job is the next job of its schedule. */
  next: 16,
} as const;

/** The extras as JSON, under short keys. */
interface Extras {
  /** deduplicationId */
  d?: string;
  /** scheduleId */
  s?: string;
  /** group */
  g?: string;
}

/** Returns the marks of a new job: 0 for a plain job. */
export function marksOf({ deduplication, scheduleId, group }: NewJob): number {
  const key = group === undefined ? 0 : MARK.key;
  return key | (deduplication === undefined ? 0 : MARK.unique) | (scheduleId === undefined ? 0 : MARK.next);
}

/** Returns the extras of a new job as JSON text; null if there are none. */
export function extrasOf({ deduplication, scheduleId, group }: NewJob): string | null {
  if (deduplication === undefined && scheduleId === undefined && group === undefined) return null;
  const extras: Extras = {};
  if (deduplication !== undefined) extras.d = deduplication.id;
  if (scheduleId !== undefined) extras.s = scheduleId;
  if (group !== undefined) extras.g = group;
  return JSON.stringify(extras);
}

/** Returns the fields of the record that the extras of a new job hold; null if there are none. */
export function extraFieldsOf({ deduplication, scheduleId, group }: NewJob): Partial<JobRecord> | null {
  if (deduplication === undefined && scheduleId === undefined && group === undefined) return null;
  const fields: Partial<JobRecord> = {};
  if (deduplication !== undefined) fields.deduplicationId = deduplication.id;
  if (scheduleId !== undefined) fields.scheduleId = scheduleId;
  if (group !== undefined) fields.group = group;
  return fields;
}

/** Returns the fields of the record that stand in the extras. */
export function readExtras(text: string): Partial<JobRecord> {
  const { d, s, g } = JSON.parse(text) as Extras;
  const fields: Partial<JobRecord> = {};
  if (d !== undefined) fields.deduplicationId = d;
  if (s !== undefined) fields.scheduleId = s;
  if (g !== undefined) fields.group = g;
  return fields;
}
