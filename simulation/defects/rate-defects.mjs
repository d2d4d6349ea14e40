// Stores with one defect of the rate limit each.
const TOO_MANY = 'no more starts than the rate allows';

export const RATE_DEFECTS = {
  'a job that is handed back gives its start back': {
    violates: TOO_MANY,
    store: (right) => ({
      closeSessions: async (sessions, how) => {
        await right.closeSessions(sessions, how);
        for (const { queue } of sessions) await right.configure(queue, { blockedMs: 0 });
      },
      sweep: async (queue, limit) => {
        const reply = await right.sweep(queue, limit);
        if (reply.stalled.length > 0) await right.configure(queue, { blockedMs: 0 });
        return reply;
      },
    }),
  },
  'a claim within settle ignores the limit': {
    violates: TOO_MANY,
    store: (right) => ({
      settle: (queue, outcomes, call, claim) => {
        const { limit: _, ...request } = claim ?? {};
        return right.settle(queue, outcomes, call, claim && request);
      },
    }),
  },
};
