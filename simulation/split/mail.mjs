// What the memory store needs to be one of two servers: an outbox in each queue for messages to queues of the other server, and an inbox with
// the number of the last message that was applied. As on a Redis Cluster (src/store/redis/lua), a message is written in the step that
// causes it. Within a server, everything is one step, as it is in the memory store.
import { isFar } from '../queues.mjs';

/** Messages to another queue. Numbers grow across a failover too: they are never behind the clock. */
export function send(queue, to, body, now) {
  queue.outbox ??= new Map();
  queue.lastNumber = Math.max((queue.lastNumber ?? 0) + 1, Math.floor(now * 1000));
  const messages = queue.outbox.get(to) ?? [];
  queue.outbox.set(to, messages);
  messages.push({ number: queue.lastNumber, body });
  queue.sentTo ??= new Set();
  queue.sentTo.add(to);
}

/** The sender of a message, as the memory store sees a queue. */
const sender = (name, queue) => ({ name, peer: (other) => queue.peer(other) });

const farParents = (queue, job) => (job.extras?.parents ?? []).filter((parent) => isFar(queue.name, parent.queue));

const CHILD_MARK = 2;

/** By module: what it exports instead. */
export const MAIL = {
  'store/memory/family.js': ({ childEnded, childRemoved }) => ({
    childEnded: (queue, job, now) => {
      childEnded(queue, job, now);
      for (const parent of farParents(queue, job)) tellEnd(queue, job, parent, now);
    },
    childRemoved: (queue, job, now) => {
      childRemoved(queue, job, now);
      for (const { queue: to, id } of farParents(queue, job))
        send(queue, to, { kind: 'removed', child: job.id, parent: id }, now);
    },
    arriveEnd: (queue, from, { child, parent, state, text, onFailure }, now) => {
      // A link that is not pending knows of this end, or of a later one.
      if (queue.links.get(parent)?.get({ queue: from, id: child })?.state !== 'pending') return;
      const job = { id: child, state, marks: CHILD_MARK, extras: { parents: [{ queue: queue.name, id: parent, onFailure }] } };
      job[state === 'completed' ? 'returnvalue' : 'failedReason'] = text;
      childEnded(sender(from, queue), job, now);
    },
    arriveRemoval: (queue, from, { child, parent }, now) => {
      const job = { id: child, marks: CHILD_MARK, extras: { parents: [{ queue: queue.name, id: parent }] } };
      childRemoved(sender(from, queue), job, now);
    },
  }),
  'store/memory/dead-letter.js': ({ sendLetter }) => ({
    sendLetter: (queue, job, fence, now) => {
      const to = job.extras?.deadLetter;
      if (to === undefined || !isFar(queue.name, to)) return sendLetter(queue, job, fence, now);
      const { id, name, data, opts, timestamp, priority, marks, extras, attemptsMade, failedReason, finishedOn } = job;
      const letter = { id, name, data, opts, timestamp, priority, marks, extras, attemptsMade, failedReason, finishedOn };
      send(queue, to, { kind: 'letter', letter, fence }, now);
    },
    arriveLetter: (queue, from, { letter, fence }, now) => sendLetter(sender(from, queue), letter, fence, now),
  }),
  'store/memory/add-family.js': (_, realm) => ({
    addFamily: (queue, jobs, now) => {
      const placed = jobs.map((job) => ({ ...job, queue: job.queue ?? queue.name }));
      place(realm, queue, placed, now);
      return jobs.map(({ id }) => ({ id, status: 'added' }));
    },
  }),
};

export function tellEnd(queue, { id, state, returnvalue, failedReason }, { queue: to, id: parent, onFailure }, now) {
  if (state !== 'completed' && onFailure === undefined) return;
  const text = state === 'completed' ? returnvalue : failedReason;
  send(queue, to, { kind: 'ended', child: id, parent, state, text, onFailure }, now);
}

/** Adds the jobs of a tree, parents first. A job of the other server follows with a message, after the link to it is there. */
function place(realm, queue, jobs, now) {
  const { link, linkFar, releaseIfNone } = { linkFar: pendingLink, ...realm.load('store/memory/family.js') };
  const { enter } = realm.load('store/memory/state/enter.js');
  /** By id: the jobs of the message that brings the job. */
  const later = new Map();
  const added = [];
  for (const job of jobs) {
    const [parent] = job.parents ?? [];
    const withParent = parent === undefined ? undefined : later.get(parent.id);
    if (withParent !== undefined) {
      withParent.push(job);
      later.set(job.id, withParent);
    } else if (isFar(queue.name, job.queue)) {
      const sent = [job];
      later.set(job.id, sent);
      linkFar(queue.peer(parent.queue), parent.id, job);
      send(queue, job.queue, { kind: 'add', jobs: sent }, now);
    } else {
      const target = queue.peer(job.queue);
      const stored = target.jobs.get(job.id) ?? enter(target, job.id, job, now);
      for (const one of job.parents ?? []) link(target, stored, one);
      added.push([target, stored]);
    }
  }
  for (const [target, stored] of added) releaseIfNone(target, stored, now);
}

function pendingLink(queue, parent, { queue: name, id }) {
  queue.linksOf(parent).set({ queue: name, id }, 'pending');
}

/** Applies a message of the other server. */
export function arrive(realm, queue, from, body, now) {
  const family = realm.load('store/memory/family.js');
  switch (body.kind) {
    case 'ended':
      return family.arriveEnd(queue, from, body, now);
    case 'removed':
      return family.arriveRemoval(queue, from, body, now);
    case 'letter':
      return realm.load('store/memory/dead-letter.js').arriveLetter(queue, from, body, now);
    default:
      return place(realm, queue, body.jobs, now);
  }
}

/** The ids of jobs that messages to other queues will add. */
export function underWay({ outbox = new Map() }) {
  const messages = [...outbox.values()].flat();
  return messages.flatMap(({ body }) => (body.kind === 'add' ? body.jobs.map(({ id }) => id) : []));
}
