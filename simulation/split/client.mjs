// The store of a process that reaches two servers: each call goes to the server of its queue, and what it means for the other server is
// carried there by the product's own relays (src/store/redis/state/relays.ts), as src/store/redis does it on a Cluster.
import { serverOf } from '../queues.mjs';

const PREFIX = 'simulated';

/** `near`: a store each of whose calls goes to the server of its queue. */
export function splitStore(near, realm) {
  const { Relays } = realm.load('store/redis/state/relays.js');
  const run = (script, queue, args) => near[script](queue, args);
  const relays = new Relays({ run, registry: { ensure: () => undefined }, prefix: PREFIX, isCluster: () => true });
  const after = async (queue, reply) => {
    if (reply.sentTo?.length > 0) await relays.after(queue, reply.sentTo);
    return reply;
  };
  return {
    ...near,
    renew: (renewals) => shared(renewals, (part) => near.renew(part)),
    checkSessions: (sessions) => shared(sessions, (part) => near.checkSessions(part)),
    closeSessions: async (sessions, how) =>
      void (await shared(sessions, async (part) => (await near.closeSessions(part, how)) ?? [])),
    add: async (queue, ...args) => after(queue, await near.add(queue, ...args)),
    settle: async (queue, ...args) => after(queue, await near.settle(queue, ...args)),
    sweep: async (queue, limit) => {
      const reply = await after(queue, await near.sweep(queue, limit));
      if (reply.checks === true) await relays.check(queue);
      return reply;
    },
    probe: async (queue) => {
      const reply = await near.probe(queue);
      const isUndone = reply.undone === true || (reply.kin?.length > 0 && (await relays.anyTo(queue, reply.kin)));
      return isUndone ? { ...reply, undone: true } : reply;
    },
    relay: (queue, limit) => relays.relay(queue, limit),
  };
}

/** A list of things that have a queue each, in a call to each server; the replies in the order of the list. */
async function shared(list, call) {
  const parts = [0, 1].map((server) => list.filter(({ queue }) => serverOf(queue) === server));
  const replies = await Promise.all(parts.map((part) => (part.length === 0 ? [] : call(part))));
  const next = [0, 0];
  return list.map(({ queue }) => replies[serverOf(queue)][next[serverOf(queue)]++]);
}
