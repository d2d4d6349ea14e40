// Adds jobs with parents or children, in any queues, as a whole or not at all.
import { type JobRef, refKey } from '../../job/family.js';
import type { NewJob } from '../../job/record.js';
import type { AddReply } from '../contract/index.js';
import { adopt, link, parentsOf, releaseIfNone, applyToNewParents } from './family.js';
import { enter, nextId } from './state/enter.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

export function isOfFamily({ queue, parents, waitsForChildren }: NewJob): boolean {
  return queue !== undefined || parents !== undefined || waitsForChildren === true;
}

export function addFamily(queue: QueueState, jobs: NewJob[], now: number): AddReply[] {
  const refusals = refusalsOf(queue, jobs);
  if (refusals.some((status) => status !== undefined)) {
    return jobs.map(({ id = '' }, index) => ({ id, status: refusals[index] ?? 'refused' }));
  }
  const added: [QueueState, StoredJob, JobRef[]][] = [];
  const replies = jobs.map((job): AddReply => {
    const target = targetOf(queue, job);
    const id = job.id ?? nextId(target);
    const known = target.jobs.get(id);
    if (known !== undefined) target.log.record('duplicated', id);
    const stored = known ?? enter(target, id, job, now);
    const parents = job.parents ?? [];
    if (known !== undefined) adopt(known, parents);
    const linked = parents.filter((parent) => link(target, stored, parent));
    added.push([target, stored, linked]);
    return { id, status: known === undefined ? 'added' : 'duplicate' };
  });
  // A child that has ended must not release a parent whose other children come later in the call.
  for (const [target, job, linked] of added) applyToNewParents(target, job, linked, now);
  for (const [target, job] of added) releaseIfNone(target, job, now);
  return replies;
}

function targetOf(queue: QueueState, job: NewJob): QueueState {
  return job.queue === undefined ? queue : queue.peer(job.queue);
}

function refusalsOf(queue: QueueState, jobs: NewJob[]): ('noParent' | 'otherParent' | undefined)[] {
  const before = new Set<string>();
  return jobs.map((job) => {
    const { id, parents = [], shares } = job;
    const target = targetOf(queue, job);
    const exists = (ref: JobRef): boolean => queue.peer(ref.queue).jobs.has(ref.id);
    if (parents.some((parent) => !before.has(refKey(parent)) && !exists(parent))) return 'noParent';
    if (id === undefined) return undefined;
    before.add(refKey({ queue: target.name, id }));
    const known = target.jobs.get(id);
    if (known === undefined || parents.length === 0 || shares === true) return undefined;
    const given = new Set(parents.map(refKey));
    const others = parentsOf(known).filter((parent) => !given.has(refKey(parent)));
    return others.some(exists) ? 'otherParent' : undefined;
  });
}
