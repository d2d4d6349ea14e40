// The verb `add` of the memory store: stores new jobs, and returns the first reply when a caller repeats a call.
import type { Deduplication } from '../../job/deduplication.js';
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import { countingEntry, extendEntry, keepDraft, ownEntry } from './state/deduplication.js';
import { enter, nextId } from './state/enter.js';
import { Entry } from './state/entries.js';
import { addFamily, isOfFamily } from './add-family.js';
import { remove } from './leave.js';
import { FROM } from './state/moves.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

export function add(queue: QueueState, jobs: NewJob[], call: Call, now: number): AddReply[] {
  const remembered = queue.adds.recall(call);
  if (remembered !== undefined) return copy(remembered);
  const replies = jobs.some(isOfFamily) ? addFamily(queue, jobs, now) : jobs.map((job) => addOne(queue, job, now));
  queue.adds.remember(call, copy(replies), now, () => false);
  return replies;
}

function addOne(queue: QueueState, job: NewJob, now: number): AddReply {
  const id = job.id ?? nextId(queue);
  if (queue.jobs.has(id)) {
    queue.log.record('duplicated', id);
    return { id, status: 'duplicate' };
  }
  if (job.deduplication !== undefined) return addUnique(queue, id, job, job.deduplication, now);
  enter(queue, id, job, now);
  return { id, status: 'added' };
}

function addUnique(queue: QueueState, id: string, job: NewJob, mode: Deduplication, now: number): AddReply {
  const entry = countingEntry(queue, mode.id, now);
  if (entry === undefined) {
    enter(queue, id, job, now);
    ownEntry(queue, mode, id, now);
    return { id, status: 'added' };
  }
  const owner = queue.jobs.get(entry.owner);
  if (mode.replaceDelayed === true && owner?.state === 'delayed') {
    replace(queue, entry, owner, { id, job, mode }, now);
    return { id, status: 'added' };
  }
  if (mode.keepLastIfActive === true && owner?.state === 'active') keepDraft(queue, entry, job);
  else extendEntry(queue, entry, mode, now);
  queue.log.record('deduplicated', entry.owner, { deduplicationId: mode.id, deduplicatedJobId: id });
  return { id: entry.owner, status: 'deduplicated' };
}

interface Successor {
  id: string;
  job: NewJob;
  mode: Deduplication;
}

/** Puts a new job in the place of a delayed owner. The entry keeps its end, unless the new job extends it. */
function replace(queue: QueueState, { at }: Entry, owner: StoredJob, { id, job, mode }: Successor, now: number): void {
  queue.log.record('removed', owner.id, FROM.delayed);
  remove(queue, owner, now);
  queue.log.record('deduplicated', id, { deduplicationId: mode.id, deduplicatedJobId: owner.id });
  enter(queue, id, job, now);
  const entry = new Entry(mode.id, id);
  queue.entries.set(entry, at);
  extendEntry(queue, entry, mode, now);
}

function copy(replies: AddReply[]): AddReply[] {
  return replies.map(({ id, status }) => ({ id, status }));
}
