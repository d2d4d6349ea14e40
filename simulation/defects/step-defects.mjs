// Defects of steps, signals, cancels and time limits: in the memory store, in the handle of a job, in workers and in lock threads.

const STAYS = 'a recorded step stays';
const CANCEL_ENDS = ['a cancelled job ends', 'a cancelled job never runs again'];

/** A store whose verb `write` treats steps in a way of its own. */
function writing(change) {
  return (right) => ({
    write: async (queue, writes) => {
      const replies = await right.write(queue, await Promise.all(writes.map((write) => change(right, queue, write))));
      return replies;
    },
  });
}

export const STEP_DEFECTS = {
  'a step is recorded for a run that has lost its job': {
    violates: 'no stale write',
    store: writing(async (right, queue, write) => {
      if (write.kind !== 'step' || write.token === undefined) return write;
      const [lock] = await right.locks(queue, { jobIds: [write.jobId] });
      return { ...write, token: lock?.token ?? write.token };
    }),
  },
  'a sleep of a run that has lost its job is recorded': {
    violates: 'no stale write',
    modules: {
      'store/memory/settle.js': ({ settle }, realm) => ({
        settle: (queue, outcomes, call, request, now) => {
          const { recordStep } = realm.load('store/memory/state/steps.js');
          for (const { jobId, token, step } of outcomes) {
            const job = queue.jobs.get(jobId);
            if (step !== undefined && job !== undefined && job.lock?.token !== token) recordStep(job, step);
          }
          return settle(queue, outcomes, call, request, now);
        },
      }),
    },
  },
  'a later write changes a recorded step': {
    violates: STAYS,
    modules: {
      'store/memory/state/steps.js': ({ recordStep }) => ({
        recordStep: (job, step) => {
          job.steps?.dropFrom(step.name);
          return recordStep(job, step);
        },
      }),
    },
  },
  'a job that stalls loses its steps': {
    violates: STAYS,
    modules: {
      'store/memory/state/stall.js': ({ stall }) => ({
        stall: (queue, lost, now) => {
          for (const { lock } of lost) lock.job.steps = undefined;
          return stall(queue, lost, now);
        },
      }),
    },
  },
  'a run does not read what the runs before have recorded': {
    violates: 'a recorded step does not run again',
    client: (right) => ({
      ...right,
      jobs: async (queue, query) => {
        const reply = await right.jobs(queue, query);
        return 'stepsOf' in query ? { steps: reply.steps.filter(({ name }) => !name.startsWith('s:')) } : reply;
      },
    }),
  },
  'a step that got no reply is believed to be recorded': {
    violates: STAYS,
    client: (right) => ({
      ...right,
      write: async (queue, writes) => {
        try {
          return await right.write(queue, writes);
        } catch (error) {
          if (writes[0].kind !== 'step' || writes[0].token === undefined) throw error;
          return writes.map(({ value }) => ({ status: 'done', value }));
        }
      },
    }),
  },
  'the key of a step changes with its run': {
    violates: 'a step has one key',
    modules: {
      'handle/steps.js': ({ RunSteps }) => ({
        RunSteps: class extends RunSteps {
          #fence;

          constructor(snapshot) {
            super(snapshot);
            this.#fence = snapshot.lock.fence;
          }

          step(name, work) {
            return super.step(name, (context) => work({ ...context, key: `${context.key}:${this.#fence}` }));
          }
        },
      }),
    },
  },
  'a sleep is half as long': {
    violates: 'no sleep ends early',
    store: (right) => ({
      settle: (queue, outcomes, call, claim) => {
        const halved = outcomes.map((outcome) =>
          outcome.step === undefined ? outcome : { ...outcome, delayMs: Math.floor(outcome.delayMs / 2) },
        );
        return right.settle(queue, halved, call, claim);
      },
    }),
  },
  'any signal ends any sleep': {
    violates: 'no sleep ends early',
    store: (right) => ({
      write: async (queue, writes) => {
        const replies = await right.write(queue, writes);
        const signalled = writes.filter(({ kind, token }) => kind === 'step' && token === undefined).map(({ jobId }) => jobId);
        if (signalled.length > 0) await right.change(queue, signalled, { kind: 'promote' });
        return replies;
      },
    }),
  },
  'a signal is recorded and does not wake its job': {
    violates: 'a signal wakes its job',
    modules: { 'store/memory/state/steps.js': () => ({ setAwaited: () => undefined }) },
  },
  'a run that waits for a signal gets none of its data': {
    violates: 'a signal is found',
    modules: {
      'handle/steps.js': ({ RunSteps }) => ({
        RunSteps: class extends RunSteps {
          async waitFor(name, options) {
            const data = await super.waitFor(name, options);
            return data === undefined ? data : null;
          }
        },
      }),
    },
  },
  'a cancelled job that is given back waits again': {
    violates: CANCEL_ENDS,
    modules: {
      'store/memory/settle.js': ({ settle }, realm) => ({
        settle: (queue, outcomes, call, request, now) => {
          const { MARK } = realm.load('store/marks.js');
          for (const { jobId, token, kind } of outcomes) {
            const job = queue.jobs.get(jobId);
            const waits = kind !== 'completed' && kind !== 'failed';
            if (waits && job?.lock?.token === token) job.marks &= ~MARK.cancelled;
          }
          return settle(queue, outcomes, call, request, now);
        },
      }),
    },
  },
  'a cancelled job whose owner dies waits again': {
    violates: [...CANCEL_ENDS, 'stalls are counted'],
    modules: {
      'store/memory/state/stall.js': ({ stall }, realm) => ({
        stall: (queue, lost, now) => {
          const { MARK } = realm.load('store/marks.js');
          for (const { lock } of lost) lock.job.marks &= ~MARK.cancelled;
          return stall(queue, lost, now);
        },
      }),
    },
  },
  'a cancel of a job that waits is only noted': {
    violates: CANCEL_ENDS,
    modules: {
      'store/memory/change.js': ({ change }) => ({
        change: (queue, target, what, now) => {
          if (what.kind !== 'cancel' || !Array.isArray(target)) return change(queue, target, what, now);
          const waits = (id) => ['waiting', 'delayed'].includes(queue.jobs.get(id)?.state);
          const noted = target.filter(waits);
          const done = change(
            queue,
            target.filter((id) => !noted.includes(id)),
            what,
            now,
          );
          return { ...done, changed: [...done.changed, ...noted] };
        },
      }),
    },
  },
  'no session asks whether there is a notice for it': {
    violates: 'a cancel is heard',
    client: (right) => ({
      ...right,
      checkSessions: async (sessions) => (await right.checkSessions(sessions)).map((reply) => ({ ...reply, noticed: false })),
    }),
  },
  'a cancel that comes before the claim has its reply is forgotten': {
    violates: 'a cancel is heard',
    modules: {
      'session/lock-table.js': ({ LockTable }) => ({
        LockTable: class extends LockTable {
          notice(notices) {
            super.notice(notices.filter(({ token, kind }) => kind !== 'cancelled' || this.get(token) !== undefined));
          }
        },
      }),
    },
  },
  'a run whose time is over keeps its lock until the store replies': {
    violates: 'trust ends first',
    modules: {
      'session/held-lock.js': ({ HeldLock }) => ({
        HeldLock: class extends HeldLock {
          lose(reason) {
            return reason.startsWith('its time limit') || super.lose(reason);
          }
        },
      }),
    },
  },
  'the lock thread ends a run before its lock is lost': {
    violates: 'trust ends first',
    modules: {
      'background/run-limits.js': ({ RunLimits }) => ({
        RunLimits: class extends RunLimits {
          add(limit, limited) {
            const memory = new Proxy(limited.memory, { get: (all, key) => (key === 'lose' ? () => undefined : bound(all, key)) });
            super.add(limit, { ...limited, memory });
          }
        },
      }),
    },
  },
  'the lock thread ends no run of a blocked loop': {
    violates: 'a time limit is kept',
    modules: {
      'background/run-limits.js': ({ RunLimits }) => ({
        RunLimits: class extends RunLimits {
          add() {}
        },
      }),
    },
  },
  'a handler that ignores its time limit keeps its job': {
    violates: ['a time limit is kept', 'every job ends'],
    modules: {
      'worker/time-limit.js': ({ TimeLimit }) => ({
        TimeLimit: class extends TimeLimit {
          constructor(lock, options) {
            super(lock, { ...options, onStart: () => undefined, onOver: () => undefined });
          }
        },
      }),
    },
  },
  'a handler that moves its job keeps its lock until the store replies': {
    violates: 'trust ends first',
    modules: {
      'session/held-lock.js': ({ HeldLock }) => {
        // Each process has a class of its own, whose instances have the field.
        const { get } = Object.getOwnPropertyDescriptor(HeldLock.prototype, 'held');
        Object.defineProperty(HeldLock.prototype, 'held', {
          get() {
            const { moved } = this;
            this.moved = false;
            const isHeld = get.call(this);
            this.moved = moved;
            return isHeld;
          },
        });
        return {};
      },
    },
  },
};

function bound(target, key) {
  const value = target[key];
  return typeof value === 'function' ? value.bind(target) : value;
}
