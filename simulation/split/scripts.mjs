// What each of two servers can do beyond the memory store: the scripts of src/store/redis/lua that carry messages between queues. Their
// caller is the product's own code (src/store/redis/state/relays.ts), in each process.
import { isFar } from '../queues.mjs';
import { arrive, send, tellEnd } from './mail.mjs';

/** As in lua/sweep.lua: how often a sweep has the parents checked that have waited for long. */
const CHECK_EVERY_MS = 10_000;
/** Of one reading. */
const MOST_MESSAGES = 50;
const TEXTS_OF_LINK = 3;

const outboxOf = (queue) => queue.outbox ?? new Map();

/** The queues of the other server that have pending children of waiting parents. */
function kinOf(queue) {
  const kin = new Set();
  for (const { id } of queue.parents.forward())
    for (const { child, state } of queue.links.get(id)?.all() ?? []) if (state === 'pending') kin.add(child.queue);
  return [...kin].filter((name) => isFar(queue.name, name));
}

/** `memory`: of this server. */
export function scriptsOf(realm, memory) {
  const script = (work) => async (name, args) => memory.write(name, (queue, now) => work(queue, args, now));
  return {
    kin: script((queue) => [[...outboxOf(queue).keys()], kinOf(queue)]),
    outgoing: script(outgoing),
    deliver: script((queue, args, now) => deliver(realm, queue, args, now)),
    overdue: script(overdue),
    remind: script((queue, [to, ...texts], now) => {
      queue.sentTo = new Set();
      for (let at = 0; at < texts.length; at += TEXTS_OF_LINK) remind(queue, to, texts[at], texts[at + 1], now);
      return [...queue.sentTo];
    }),
  };
}

function outgoing(queue, [to, until, most]) {
  const messages = (outboxOf(queue).get(to) ?? []).filter(({ number }) => until === '' || number > Number(until));
  if (messages.length > 0) outboxOf(queue).set(to, messages);
  else outboxOf(queue).delete(to);
  return messages.slice(0, Math.min(most, MOST_MESSAGES)).flatMap(({ number, body }) => [String(number), body]);
}

function deliver(realm, queue, [, from, , most, ...messages], now) {
  queue.inbox ??= new Map();
  queue.sentTo = new Set();
  const last = queue.inbox.get(from) ?? 0;
  let taken = 0;
  for (let at = 0; at < messages.length && taken < most; at += 2) {
    const number = Number(messages[at]);
    if (number > last) {
      queue.inbox.set(from, number);
      arrive(realm, queue, from, messages[at + 1], now);
    }
    taken += 1;
  }
  return [taken, 0, [...queue.sentTo]];
}

function overdue(queue, [parents, links, afterMs], now) {
  const waiting = [...queue.parents.forward()].filter(({ addedOn }) => addedOn <= now - afterMs).slice(0, parents);
  const isAsked = ({ child, state }) =>
    state === 'pending' && isFar(queue.name, child.queue) && !outboxOf(queue).has(child.queue);
  const pending = waiting.flatMap(({ id }) =>
    [...(queue.links.get(id)?.all() ?? [])].filter(isAsked).flatMap(({ child }) => [id, `${child.queue}\n${child.id}`, '']),
  );
  return pending.slice(0, TEXTS_OF_LINK * links);
}

function remind(queue, to, parent, child, now) {
  const job = queue.jobs.get(child);
  const known = job?.extras?.parents?.find((one) => one.queue === to && one.id === parent);
  if (known === undefined) send(queue, to, { kind: 'removed', child, parent }, now);
  else if (job.finishedOn !== undefined) tellEnd(queue, job, known, now);
}

/** Verbs of the store that also say which queues got messages, as the scripts of Redis do. Only the product's relays read it. */
export function withMail(right, memory) {
  const sending =
    (verb) =>
    async (name, ...args) => {
      const queue = memory.state(name);
      queue.sentTo = new Set();
      const reply = await right[verb](name, ...args);
      return noted(reply, { sentTo: [...queue.sentTo] });
    };
  return {
    add: sending('add'),
    settle: sending('settle'),
    sweep: async (name, limit) => {
      const reply = await sending('sweep')(name, limit);
      const queue = memory.state(name);
      const isDue = queue.parents.first !== undefined && memory.now() - (queue.checkedAt ?? 0) >= CHECK_EVERY_MS;
      if (isDue) queue.checkedAt = memory.now();
      return noted(reply, { checks: isDue });
    },
    probe: async (name) => {
      const reply = await right.probe(name);
      const queue = memory.state(name);
      if (outboxOf(queue).size > 0 || queue.schedules.owing > 0) reply.undone = true;
      return noted(reply, { kin: kinOf(queue) });
    },
  };
}

/** The books do not see it, and compare replies as they are. */
function noted(reply, fields) {
  for (const [name, value] of Object.entries(fields)) Object.defineProperty(reply, name, { value, configurable: true });
  return reply;
}
