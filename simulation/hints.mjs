// Crash hints of a store that looks at connections, on top of the memory store, which has none: a session whose process is gone, or is out of
// sight although it lives, is left no more than its grace, until it is renewed or granted something.

/** `memory`: the state of the store. */
export function withHints(right, { memory, witness, isFallible }) {
  /** By session: when it would have ended. */
  const suspected = new Map();
  const sessionOf = (queue, id) => memory.state(queue).sessions.get(id);

  const acquit = (queue, id) => {
    const session = sessionOf(queue, id);
    if (session !== undefined && suspected.has(id)) {
      session.expiresAt = suspected.get(id);
      witness.shortened(id, session.expiresAt - memory.now());
    }
    suspected.delete(id);
  };
  const isGone = (id) => {
    const process = witness.processOf(id);
    return process?.isDead === true || (isFallible && process?.isOutOfSight === true);
  };

  return {
    probe: async (queue) => {
      const { sessions, expiries } = memory.state(queue);
      const now = memory.now();
      let first = Number.POSITIVE_INFINITY;
      for (const session of sessions.values()) {
        if (session.open && !suspected.has(session.id) && session.expiresAt > now && isGone(session.id)) {
          suspected.set(session.id, session.expiresAt);
          session.expiresAt = Math.min(session.expiresAt, now + witness.graceOf(session.id));
          // Sweeps look at it no earlier than it said when it was put there.
          expiries.remove(session);
          session.at = session.expiresAt;
          expiries.push(session);
          witness.shortened(session.id, session.expiresAt - now);
        }
        if (session.open && suspected.has(session.id)) first = Math.min(first, session.expiresAt - now);
      }
      return { sessions: sessions.size, ...(first < Number.POSITIVE_INFINITY && { dueInMs: Math.max(0, Math.ceil(first)) }) };
    },
    checkSessions: async (refs) => {
      const isUnsuspected = ({ queue, id }) => sessionOf(queue, id)?.isAlive(memory.now()) === true && !suspected.has(id);
      const replies = await right.checkSessions(refs);
      return replies.map((reply, index) => ({ ...reply, unsuspected: isUnsuspected(refs[index]) }));
    },
    renew: async (renewals) => {
      const replies = await right.renew(renewals);
      renewals.forEach(({ id }, index) => replies[index].alive && suspected.delete(id));
      return replies;
    },
    claim: async (queue, request) => {
      const reply = await right.claim(queue, request);
      if (reply.jobs.length > 0) acquit(queue, request.session);
      return reply;
    },
    settle: async (queue, outcomes, call, request) => {
      const reply = await right.settle(queue, outcomes, call, request);
      if (reply.claimed?.jobs.length > 0) acquit(queue, request.session);
      return reply;
    },
    acquire: async (queue, wishes) => {
      const grants = await right.acquire(queue, wishes);
      wishes.forEach(({ session }, index) => grants[index].status === 'held' && acquit(queue, session));
      return grants;
    },
  };
}
