// Families of the memory store: what the end of a child means for its parents, and what the removal of a parent means for its children.
// All queues are in one place, so a message takes effect in the step that sends it: there is no outbox.
import {
  type Instruction,
  isSameJob,
  type JobRef,
  ON_COMPLETION,
  ON_REMOVAL,
  type ParentLink,
  refKey,
} from '../../job/family.js';
import { MARK } from '../marks.js';
import { FROM, putDelayed, putWaiting } from './state/moves.js';
import { leave } from './state/out.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

interface Ending {
  child: JobRef;
  instruction: Instruction;
  /** The result of the child, or the reason of its failure. */
  text?: string | undefined;
}

/** Notifies the parents of a finished job of its end. */
export function childEnded(queue: QueueState, job: StoredJob, now: number): void {
  for (const parent of parentsOf(job)) applyEnd(queue, job, parent, now);
}

/** Notifies new parents of the end of a job, if it has ended. Its other parents know. */
export function applyToNewParents(queue: QueueState, job: StoredJob, parents: JobRef[], now: number): void {
  if (job.finishedOn === undefined) return;
  const added = new Set(parents.map(refKey));
  for (const parent of parentsOf(job)) if (added.has(refKey(parent))) applyEnd(queue, job, parent, now);
}

function applyEnd(queue: QueueState, job: StoredJob, parent: ParentLink, now: number): void {
  const isCompleted = job.state === 'completed';
  const instruction = isCompleted ? ON_COMPLETION : parent.onFailure;
  const text = isCompleted ? job.returnvalue : job.failedReason;
  if (instruction !== undefined) deliver(queue, parent, { child: refOf(queue, job), instruction, text }, now);
}

/** Notifies the parents of a job that it is removed. Ended links stay as they are. */
export function childRemoved(queue: QueueState, job: StoredJob, now: number): void {
  const child = refOf(queue, job);
  for (const parent of parentsOf(job)) deliver(queue, parent, { child, instruction: ON_REMOVAL }, now);
}

/** A finished child waits again, so its links are pending again. */
export function childReopened(queue: QueueState, job: StoredJob): void {
  const child = refOf(queue, job);
  for (const parent of parentsOf(job)) {
    const links = queue.peer(parent.queue).links.get(parent.id);
    if (links?.get(child) !== undefined) links.set(child, 'pending');
  }
}

/** Gives parents to a job that is in the store. */
export function adopt(job: StoredJob, parents: ParentLink[]): void {
  const all = [...parentsOf(job)];
  const known = new Set(all.map(refKey));
  for (const parent of parents) {
    if (!known.has(refKey(parent))) all.push({ ...parent });
    known.add(refKey(parent));
  }
  if (all.length > parentsOf(job).length) setParents(job, all);
}

/** Makes the link of a parent to its child. Returns false if they have one, which stays as it is. */
export function link(queue: QueueState, job: StoredJob, parent: JobRef): boolean {
  const child = refOf(queue, job);
  const family = queue.peer(parent.queue);
  const links = family.linksOf(parent.id);
  if (links.get(child) !== undefined) return false;
  links.set(child, 'pending');
  const parentJob = family.jobs.get(parent.id);
  if (parentJob !== undefined) parentJob.marks |= MARK.parent;
  return true;
}

/** Deletes a pending link, and takes the parent from the child. Returns whether there was such a link. */
export function unlink(queue: QueueState, job: StoredJob, child: JobRef, now: number): boolean {
  if (queue.links.get(job.id)?.get(child)?.state !== 'pending') return false;
  const childJob = queue.peer(child.queue).jobs.get(child.id);
  if (childJob !== undefined) part(childJob, refOf(queue, job));
  deliver(queue, refOf(queue, job), { child, instruction: ON_REMOVAL }, now);
  return true;
}

/** Returns the parents in the same queue that wait for this job alone. */
export function waitingForThisAlone(queue: QueueState, job: StoredJob): StoredJob[] {
  const child = refOf(queue, job);
  const own = parentsOf(job).filter((parent) => parent.queue === queue.name);
  return own.flatMap(({ id }) => {
    const [parent, links] = [queue.jobs.get(id), queue.links.get(id)];
    const isLast = links?.counts.pending === 1 && links.get(child)?.state === 'pending';
    return parent?.state === 'waiting-children' && isLast ? [parent] : [];
  });
}

/** Moves a parent that waits for children on, if no link is pending. */
export function releaseIfNone(queue: QueueState, job: StoredJob, now: number): void {
  if (job.state === 'waiting-children' && (queue.links.get(job.id)?.counts.pending ?? 0) === 0) release(queue, job, now);
}

export function parentsOf({ marks, extras }: StoredJob): readonly ParentLink[] {
  return (marks & MARK.child) === 0 ? [] : (extras?.parents ?? []);
}

/** True if the job has no parent. */
export function isOrphan(job: StoredJob): boolean {
  return parentsOf(job).length === 0;
}

export function refOf(queue: QueueState, { id }: { id: string }): JobRef {
  return { queue: queue.name, id };
}

function deliver(from: QueueState, parent: JobRef, { child, instruction, text }: Ending, now: number): void {
  const queue = from.peer(parent.queue);
  const job = queue.jobs.get(parent.id);
  const links = queue.links.get(parent.id);
  const known = links?.get(child);
  if (job === undefined || links === undefined || known === undefined) return;
  if (instruction.link !== 'removed') links.set(child, instruction.link, text);
  else if (known.state === 'pending') links.delete(child);
  else return;
  if (instruction.doom === true) doom(queue, job, child);
  else if (instruction.release === 'whenNone') releaseIfNone(queue, job, now);
  else if (job.state === 'waiting-children') release(queue, job, now);
}

/** Lets a worker fail the job. An active job keeps its run: the failed link refuses its completion. */
function doom(queue: QueueState, job: StoredJob, child: JobRef): void {
  if (job.finishedOn !== undefined || job.state === 'active') return;
  job.marks |= MARK.doomed;
  job.extras = { ...job.extras, doomedBy: { ...child } };
  if (job.state === 'waiting') return;
  const from = FROM[job.state];
  leave(queue, job);
  job.delay = 0;
  putWaiting(queue, job, true);
  queue.log.record('waiting', job.id, from);
}

function release(queue: QueueState, job: StoredJob, now: number): void {
  leave(queue, job);
  if (job.delay > 0) {
    putDelayed(queue, job, job.delay, now);
    queue.log.record('delayed', job.id, { delay: Math.ceil(job.at) });
  } else {
    putWaiting(queue, job, true);
    queue.log.record('waiting', job.id, FROM['waiting-children']);
  }
}

/** Takes a parent from a child. */
export function part(job: StoredJob, parent: JobRef): void {
  setParents(
    job,
    parentsOf(job).filter((known) => !isSameJob(known, parent)),
  );
}

function setParents(job: StoredJob, parents: ParentLink[]): void {
  const { parents: _before, ...others } = job.extras ?? {};
  job.marks = parents.length === 0 ? job.marks & ~MARK.child : job.marks | MARK.child;
  const fields = parents.length === 0 ? others : { ...others, parents };
  job.extras = Object.keys(fields).length === 0 ? null : fields;
}
