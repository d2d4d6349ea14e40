// The one way out: every end of a job's stay in a state goes through this file.
import type { JobRef } from '../../job/family.js';
import { MARK } from '../marks.js';
import { sendLetter } from './dead-letter.js';
import { childEnded, childRemoved, isOrphan, part, refOf } from './family.js';
import { ownEntry, ownedEntry } from './state/deduplication.js';
import { enter, nextId } from './state/enter.js';
import { NEVER } from './state/entries.js';
import { FROM } from './state/moves.js';
import { leave } from './state/out.js';
import { runEnded } from './state/owing.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

export { leave } from './state/out.js';

/** Removes a job for a caller, with everything that belongs to it. `children`: also its children that have no other parent. */
export function remove(queue: QueueState, job: StoredJob, now: number, { children = false } = {}): void {
  const links = queue.links.get(job.id);
  drop(queue, job, now);
  if (job.marks === 0) return;
  if (children) for (const { child } of links?.all() ?? []) removeChild(queue, child, refOf(queue, job), now);
  const entry = ownedEntry(queue, job);
  if (entry !== undefined) queue.entries.delete(entry.id);
}

/** Takes a parent from a child. Without a further parent, the child is removed with its own children, unless it is locked. */
function removeChild(queue: QueueState, child: JobRef, parent: JobRef, now: number): void {
  const family = queue.peer(child.queue);
  const job = family.jobs.get(child.id);
  if (job === undefined) return;
  part(job, parent);
  if (!isOrphan(job) || job.lock !== undefined) return;
  family.log.record('removed', job.id, FROM[job.state]);
  remove(family, job, now, { children: true });
}

/** Does what the end of a job entails: it releases its entry, adds the draft, makes its schedule owing and applies the end to its parents. `fence`: that of the run. Call it after the events of the end. */
export function ended(queue: QueueState, job: StoredJob, fence: number, now: number): void {
  if (job.marks === 0) return;
  release(queue, job, now);
  runEnded(queue, job);
  if (job.state === 'failed' && (job.marks & MARK.cancelled) === 0) sendLetter(queue, job, fence, now);
  clearDoom(job);
  childEnded(queue, job, now);
}

/** The job has failed or completed: a retry is neither doomed nor cancelled by what happened before. */
function clearDoom(job: StoredJob): void {
  if ((job.marks & (MARK.doomed | MARK.cancelled)) === 0) return;
  const { doomedBy: _child, cancelled: _reason, ...others } = job.extras ?? {};
  job.marks &= ~(MARK.doomed | MARK.cancelled);
  job.extras = Object.keys(others).length === 0 ? null : others;
}

function release(queue: QueueState, job: StoredJob, now: number): void {
  const entry = ownedEntry(queue, job);
  if (entry === undefined || entry.at !== NEVER) return;
  const { draft } = entry;
  queue.entries.delete(entry.id);
  if (draft?.deduplication === undefined) return;
  const id = draft.id ?? nextId(queue);
  if (queue.jobs.has(id)) {
    queue.log.record('duplicated', id);
    return;
  }
  enter(queue, id, draft, now);
  ownEntry(queue, draft.deduplication, id, now);
}

/** Deletes a job. Trims of finished jobs end here: they leave the entry of the job as it is. */
export function drop(queue: QueueState, job: StoredJob, now: number): void {
  leave(queue, job);
  queue.jobs.delete(job.id);
  if (job.marks === 0) return;
  queue.links.delete(job.id);
  childRemoved(queue, job, now);
}
