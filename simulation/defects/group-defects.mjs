// Defects of groups, in the memory store.
const TOO_MANY = 'no more active than the group allows';

export const GROUP_DEFECTS = {
  'a job that ends frees two places of its group': {
    violates: TOO_MANY,
    modules: {
      'store/memory/state/groups.js': ({ Groups }) => ({
        Groups: class extends Groups {
          count(key, difference) {
            super.count(key, difference);
            if (difference < 0) super.count(key, difference);
          }
        },
      }),
    },
  },
  'the place of an expired session is free before the sweep': {
    violates: TOO_MANY,
    modules: {
      'store/memory/claim.js': ({ claim }) => ({
        claim: (queue, request, now) => {
          for (const session of queue.sessions.values()) {
            if (session.isAlive(now)) continue;
            for (const lock of session.held()) {
              if (lock.job.group !== undefined && !lock.isCounted) queue.waiting.groups.count(lock.job.group, -1);
              lock.isCounted = true;
            }
          }
          return claim(queue, request, now);
        },
      }),
    },
  },
  'a job that stalls keeps its place in its group': {
    violates: 'every job ends',
    modules: {
      'store/memory/state/stall.js': ({ stall }) => ({
        stall: (queue, lost, now) => {
          const swept = stall(queue, lost, now);
          for (const { lock } of lost) if (lock.job.group !== undefined) queue.waiting.groups.count(lock.job.group, 1);
          return swept;
        },
      }),
    },
  },
};
