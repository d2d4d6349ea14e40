// Stores with one defect of schedules each.

export const SCHEDULE_DEFECTS = {
  'an advance is carried out under any version': {
    violates: ['slots grow', 'no slot twice'],
    store: (right) => ({
      schedule: async (queue, changes) => {
        const replies = [];
        for (const change of changes) {
          const { schedules } = await right.status(queue, { schedules: { ids: [change.id] } });
          const [{ version, spec, serial } = {}] = schedules.records;
          const bent =
            change.kind === 'advance' && version !== undefined ? { ...change, kind: 'put', version, spec, serial } : change;
          replies.push(...(await right.schedule(queue, [bent])));
        }
        return replies;
      },
    }),
  },
  'a schedule is owing some time after the claim': {
    violates: 'one next job or owing',
    modules: {
      'store/memory/state/owing.js': ({ started }) => ({
        started: (queue, job, claimed) => {
          started(queue, job, claimed);
          const schedule = claimed.debt && queue.schedules.get(claimed.debt.id);
          if (schedule === undefined) return;
          queue.schedules.set(schedule, 'running');
          queue.late = [...(queue.late ?? []), schedule];
        },
      }),
      'store/memory/claim.js': ({ claim }) => ({
        claim: (queue, request, now) => {
          for (const schedule of queue.late ?? []) queue.schedules.set(schedule, 'owing');
          queue.late = [];
          return claim(queue, request, now);
        },
      }),
    },
  },
  'a job that is claimed stays the next job': {
    violates: 'one next job or owing',
    modules: { 'store/memory/state/owing.js': () => ({ started: () => undefined }) },
  },
  'no worker clears the debt of another': {
    violates: ['a schedule goes on', 'every job ends'],
    modules: {
      'store/client/debts.js': ({ Debts }) => ({
        Debts: class extends Debts {
          search() {
            // Left to the worker that claimed.
          }
        },
      }),
    },
  },
};
