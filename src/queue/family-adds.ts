// Adds jobs of which some have parents: one call for each queue of parents, which the store carries out as a whole or not at all.
import { randomUUID } from 'node:crypto';
import { HoldfastError } from '../errors.js';
import { jobKey, queueNamesOf } from '../job/names.js';
import type { NewJob } from '../job/record.js';
import type { AddReply } from '../store/contract/index.js';

/** The add batcher. */
interface Adds {
  add(jobs: NewJob[], transaction?: object): Promise<AddReply[]>;
  addFamily(jobs: NewJob[], queue: string, transaction?: object): Promise<AddReply[]>;
}

/** `queue`: the queue of the jobs. Returns one reply per job, in order. Throws if the store refuses one. */
export async function addWithParents(
  batcher: Adds,
  queue: string,
  jobs: NewJob[],
  transaction: object | undefined,
): Promise<AddReply[]> {
  const replies: AddReply[] = [];
  const fill = (places: number[], added: AddReply[]): void => {
    for (const [index, place] of places.entries()) replies[place] = added[index] as AddReply;
  };
  const { own, byParent } = placesOf(jobs);
  // First the jobs that the store may refuse.
  for (const [parentQueue, places] of byParent) {
    const children = places.map((place) => inQueue(jobs[place] as NewJob, queue, parentQueue));
    fill(places, checkAdded(children, await batcher.addFamily(children, parentQueue, transaction)));
  }
  if (own.length > 0) {
    const others = own.map((place) => jobs[place] as NewJob);
    fill(own, await batcher.add(others, transaction));
  }
  return replies;
}

/** Returns the places of the jobs: those without a parent, and the others by the queue of their parent. */
function placesOf(jobs: NewJob[]): { own: number[]; byParent: Map<string, number[]> } {
  const own: number[] = [];
  const byParent = new Map<string, number[]>();
  for (const [place, { parents }] of jobs.entries()) {
    const queue = parents?.[0]?.queue;
    const places = queue === undefined ? own : (byParent.get(queue) ?? []);
    places.push(place);
    if (queue !== undefined) byParent.set(queue, places);
  }
  return { own, byParent };
}

/** A job of another queue than that of the call needs an id: its own queue counts ids in another step. */
export function inQueue(job: NewJob, queue: string, ofCall: string): NewJob {
  return queue === ofCall ? job : { ...job, id: job.id ?? randomUUID(), queue };
}

/** Throws if the store has refused the call. The texts are BullMQ's: programs match them. */
export function checkAdded(jobs: NewJob[], replies: AddReply[]): AddReply[] {
  const bad = replies.findIndex(({ status }) => status === 'noParent' || status === 'otherParent');
  if (bad === -1) return replies;
  const { parents: [parent] = [], id, queue } = jobs[bad] as NewJob;
  const facts = { ...(id !== undefined && { jobId: id }), ...(queue !== undefined && { queue: queueNamesOf(queue).name }) };
  const key = parent === undefined ? '' : jobKey(parent);
  throw replies[bad]?.status === 'noParent'
    ? new HoldfastError('PARENT_MISSING', `Missing key for parent job ${key}. addJob`, facts)
    : new HoldfastError('PARENT_TAKEN', `The parent job ${key} cannot be replaced. addJob`, facts);
}
