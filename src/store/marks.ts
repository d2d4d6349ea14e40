// Marks and extras of a job. Marks are bits: each says that the store has more to do when the job leaves a state. Extras are the
// fields that few jobs have. An engine stores both without knowing the list of fields, and reads a field only if its bit is set.
import type { Origin } from '../job/origin.js';
import type { JobRef, ParentLink } from '../job/family.js';
import type { JobRecord, NewJob } from '../job/record.js';

export const MARK = {
  /** The job belongs to a group. */
  key: 1,
  /** The job has parents. */
  child: 2,
  /** The job has or had children. */
  parent: 4,
  /** The job has a deduplication id, so it may own the entry of that id. */
  unique: 8,
  /** The job is the next job of its schedule. */
  next: 16,
  /** The job has recorded steps. */
  steps: 32,
  /** A child failed whose failure fails the job. */
  doomed: 64,
  /** A letter goes to another queue when the job fails for good. */
  letter: 128,
  /** The job was cancelled while it was active. */
  cancelled: 256,
} as const;

/** A job without anything that a user may choose but its name, data and options: no id, no place of its own, no mark, no extras. */
export function isBare(job: NewJob): boolean {
  const { id, priority, delayMs, lifo, lockKey, triggeredBy } = job;
  const isAnywhere = priority === 0 && delayMs === 0 && !lifo && lockKey === undefined;
  return id === undefined && isAnywhere && triggeredBy === undefined && marksOf(job) === 0;
}

/** The extras as JSON, under short keys. */
interface Extras {
  /** deduplicationId */
  d?: string;
  /** scheduleId */
  s?: string;
  /** group */
  g?: string;
  /** parents */
  p?: ParentLink[];
  /** doomedBy */
  x?: JobRef;
  /** deadLetter */
  l?: string;
  /** origin */
  o?: Origin;
  /** hasSteps */
  t?: true;
  /** awaits */
  w?: string;
  /** cancelled */
  c?: string;
}

/** Returns the marks of a new job: 0 for a plain job. */
export function marksOf({ deduplication, scheduleId, group, parents, waitsForChildren, deadLetter }: NewJob): number {
  const key = group === undefined ? 0 : MARK.key;
  const family = (parents === undefined ? 0 : MARK.child) | (waitsForChildren === true ? MARK.parent : 0);
  const letter = deadLetter === undefined ? 0 : MARK.letter;
  return key | family | letter | (deduplication === undefined ? 0 : MARK.unique) | (scheduleId === undefined ? 0 : MARK.next);
}

/** Returns the extras of a new job as JSON text; null if there are none. */
export function extrasOf(job: NewJob): string | null {
  const fields = extraFieldsOf(job);
  return fields === null ? null : extrasText(fields);
}

/** Returns the fields of the record that the extras of a new job hold; null if there are none. */
export function extraFieldsOf({
  deduplication,
  scheduleId: isNextOf,
  triggeredBy,
  group,
  parents,
  deadLetter,
  origin,
}: NewJob): Partial<JobRecord> | null {
  const scheduleId = isNextOf ?? triggeredBy;
  const isPlain = deduplication === undefined && scheduleId === undefined && group === undefined;
  if (isPlain && parents === undefined && deadLetter === undefined && origin === undefined) return null;
  const fields: Partial<JobRecord> = {};
  if (deduplication !== undefined) fields.deduplicationId = deduplication.id;
  if (scheduleId !== undefined) fields.scheduleId = scheduleId;
  if (group !== undefined) fields.group = group;
  if (parents !== undefined) fields.parents = parents.map((parent) => ({ ...parent }));
  if (deadLetter !== undefined) fields.deadLetter = deadLetter;
  if (origin !== undefined) fields.origin = { ...origin };
  return fields;
}

/** Returns the fields of a record that stand in the extras, as JSON text. */
export function extrasText(fields: Partial<JobRecord>): string {
  const { deduplicationId, scheduleId, group, parents, doomedBy, deadLetter, origin, hasSteps, awaits, cancelled } = fields;
  const extras: Extras = {};
  if (deduplicationId !== undefined) extras.d = deduplicationId;
  if (scheduleId !== undefined) extras.s = scheduleId;
  if (group !== undefined) extras.g = group;
  if (parents !== undefined) extras.p = parents;
  if (doomedBy !== undefined) extras.x = doomedBy;
  if (deadLetter !== undefined) extras.l = deadLetter;
  if (origin !== undefined) extras.o = origin;
  if (hasSteps !== undefined) extras.t = hasSteps;
  if (awaits !== undefined) extras.w = awaits;
  if (cancelled !== undefined) extras.c = cancelled;
  return JSON.stringify(extras);
}

/** Returns the fields of the record that stand in the extras. */
export function readExtras(text: string): Partial<JobRecord> {
  const { d, s, g, p, x, l, o, t, w, c } = JSON.parse(text) as Extras;
  const fields: Partial<JobRecord> = {};
  if (d !== undefined) fields.deduplicationId = d;
  if (s !== undefined) fields.scheduleId = s;
  if (g !== undefined) fields.group = g;
  if (p !== undefined) fields.parents = p;
  if (x !== undefined) fields.doomedBy = x;
  if (l !== undefined) fields.deadLetter = l;
  if (o !== undefined) fields.origin = o;
  if (t !== undefined) fields.hasSteps = t;
  if (w !== undefined) fields.awaits = w;
  if (c !== undefined) fields.cancelled = c;
  return fields;
}
