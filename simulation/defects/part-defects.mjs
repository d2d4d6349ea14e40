// Workers, renewers and queues with one defect each, made by replacing what one of their modules exports, or by coming between them and
// their connection.

function bound(target, key) {
  const value = target[key];
  return typeof value === 'function' ? value.bind(target) : value;
}

/** The verb `locks`, which finds no lock for any session. */
function ownsNothing(right) {
  return async (queue, query) => ('session' in query ? [] : right.locks(queue, query));
}

/** The fences that a renewer finds in the memory of a session, and whether their runs have not begun. */
function fencesIn({ buffers }) {
  const words = buffers.slots.flatMap((block) => Array.from(new BigInt64Array(block))).filter((word) => word > 0n);
  return words.map((word) => ({ fence: Number(BigInt.asUintN(62, word)), isAhead: word >= 1n << 62n }));
}

/** A memory from which the renewer takes the jobs of its choice, and tells the worker nothing. */
function takesUnseen(isTaken) {
  return {
    'session/session-memory.js': ({ SessionMemory }) => ({
      SessionMemory: class extends SessionMemory {
        takeAhead() {
          return fencesIn(this)
            .filter(isTaken)
            .map(({ fence }) => fence);
        }
      },
    }),
  };
}

export const PART_DEFECTS = {
  'a job that was given back behind a blocked loop begins after all': {
    violates: 'trust ends first',
    modules: takesUnseen(({ isAhead }) => isAhead),
  },
  'a job that runs is given back with those that were claimed ahead': {
    violates: ['a run that goes on keeps its job', 'trust ends first'],
    modules: takesUnseen(() => true),
  },
  'a job whose outcome is stuck stays in its session': {
    violates: 'a job whose run has ended moves on',
    modules: { 'renewal/detach-locks.js': () => ({ detachLocks: async () => undefined }) },
  },
  'a job that runs leaves its session with those that have ended': {
    violates: ['a run that goes on keeps its job', 'trust ends first'],
    modules: {
      'renewal/detach-locks.js': ({ detachLocks }) => ({
        detachLocks: async (store, session, locks) =>
          detachLocks(store, session, { ...locks, held: await store.locks(session.queue, { session: session.id }) }),
      }),
    },
  },
  'a late reply makes trust last from its arrival': {
    violates: 'trust ends first',
    modules: {
      'renewal/renewal-loop.js': ({ RenewalLoop }, realm) => {
        const { now, trustUntil } = realm.load('session/trust.js');
        return {
          RenewalLoop: class extends RenewalLoop {
            #clock;

            constructor(store, clock) {
              super(store, clock);
              this.#clock = clock;
            }

            add(renewed, firstInMs) {
              const { memory, plan } = renewed;
              const extendTrust = () => memory.extendTrust(trustUntil(now(this.#clock), plan.durationMs));
              const late = new Proxy(memory, {
                get: (_, key) => (key === 'extendTrust' ? extendTrust : bound(memory, key)),
              });
              super.add({ ...renewed, memory: late }, firstInMs);
            }
          },
        };
      },
    },
  },
  'a new session is trusted from its reply on': {
    violates: 'trust ends first',
    modules: {
      'session/session.js': ({ Session }, realm) => {
        const { now, trustUntil } = realm.load('session/trust.js');
        return {
          Session: class extends Session {
            static async open(store, settings, clock) {
              const session = await super.open(store, settings, clock);
              session.memory.startTrust(trustUntil(now(clock), settings.durationMs));
              return session;
            }
          },
        };
      },
    },
  },
  'a timed claim that is repeated is trusted from its last try on': {
    violates: 'trust ends first',
    modules: {
      'store/client/session-calls.js': ({ SessionCalls }, realm) => {
        const { now } = realm.load('session/trust.js');
        const { systemClock } = realm.load('runtime/clock.js');
        return {
          SessionCalls: class extends SessionCalls {
            async perform(...args) {
              const reply = await super.perform(...args);
              return reply.retried ? { ...reply, sentAt: now(systemClock) } : reply;
            }
          },
        };
      },
    },
  },
  'an extension counts from its reply on': {
    violates: 'trust ends first',
    modules: {
      'session/lock-table.js': ({ LockTable }, realm) => {
        const { now } = realm.load('session/trust.js');
        const { systemClock } = realm.load('runtime/clock.js');
        return {
          LockTable: class extends LockTable {
            extend(token, _sentAt, durationMs) {
              super.extend(token, now(systemClock), durationMs);
            }
          },
        };
      },
    },
  },
  'a grant is heard from its reply on': {
    violates: 'trust ends first',
    modules: {
      'session/session.js': ({ Session }, realm) => {
        const { now } = realm.load('session/trust.js');
        const { granted } = Session.prototype;
        // Each process has a class of its own.
        Session.prototype.granted = function () {
          granted.call(this, now(this.clock));
        };
        return {};
      },
    },
  },
  'the answer to the question of suspicion counts from its arrival': {
    violates: 'trust ends first',
    modules: {
      'renewal/session-checks.js': ({ SessionChecks }, realm) => {
        const { now, trustUntil } = realm.load('session/trust.js');
        return {
          SessionChecks: class extends SessionChecks {
            #clock;

            constructor(store, clock, renewNow) {
              super(store, clock, renewNow);
              this.#clock = clock;
            }

            add(plan, memory) {
              const extendConfirmation = () => memory.extendConfirmation(trustUntil(now(this.#clock), plan.graceMs));
              super.add(
                plan,
                new Proxy(memory, { get: (_, key) => (key === 'extendConfirmation' ? extendConfirmation : bound(memory, key)) }),
              );
            }
          },
        };
      },
    },
  },
  'a leader leads while it is unsure': {
    violates: 'trust ends first',
    modules: {
      'lock/named-lock.js': ({ NamedLock }) => ({
        NamedLock: class extends NamedLock {
          get isSure() {
            return this.trusted;
          }
        },
      }),
    },
  },
  'trust is measured on the wall clock': {
    violates: 'trust ends first',
    modules: {
      'runtime/clock.js': ({ systemClock: { wall } }) => ({ systemClock: { monotonic: wall, wall } }),
    },
  },
  'a lock is believed in until somebody says otherwise': {
    violates: 'trust ends first',
    modules: {
      'session/held-lock.js': ({ HeldLock }) => ({
        HeldLock: class extends HeldLock {
          get held() {
            return this.session.memory.alive;
          }
        },
      }),
    },
  },
  'nobody asks whether the server has lost sight of him': {
    violates: 'trust ends first',
    client: (right) => ({ ...right, capabilities: { ...right.capabilities, fallibleHints: false } }),
  },
  'a leader leads until it is told otherwise': {
    violates: 'trust ends first',
    modules: {
      'lock/leader.js': ({ Leader }) => ({
        Leader: class extends Leader {
          #leads = false;

          constructor(...args) {
            super(...args);
            this.on('leader', () => (this.#leads = true));
            this.on('follower', () => (this.#leads = false));
          }

          get isLeader() {
            return this.#leads || super.isLeader;
          }
        },
      }),
    },
  },
  'a finish is told before it is acknowledged': {
    violates: 'told only what is true',
    modules: {
      'worker/outbox.js': ({ Outbox }) => ({
        Outbox: class extends Outbox {
          deliver(delivery) {
            delivery.settled('done');
            super.deliver({ outcome: delivery.outcome, settled: () => undefined });
          }
        },
      }),
    },
  },
  'a slot is free before its outcome is acknowledged': {
    violates: 'slots are kept',
    modules: {
      'worker/slots.js': ({ Slots }) => ({
        Slots: class extends Slots {
          roomAfter() {
            return Math.max(0, this.concurrency + this.prefetch - this.running);
          }
        },
      }),
    },
  },
  'a claim is repeated under a new number, and nothing is reconciled': {
    violates: ['slots are kept', 'every job ends'],
    client: (right) => {
      let tries = 0;
      const anew = (request) => ({ ...request, seq: request.seq + ++tries / 1e6 });
      return {
        ...right,
        claim: (queue, request) => right.claim(queue, anew(request)),
        settle: (queue, outcomes, call, request) => right.settle(queue, outcomes, call, request && anew(request)),
        locks: ownsNothing(right),
      };
    },
  },
  'nobody asks what the store holds for him': {
    violates: 'every job ends',
    client: (right) => ({ ...right, locks: ownsNothing(right) }),
  },
  'what the other lane was just granted is handed back as a stray': {
    violates: ['trust ends first', 'an end is not given up'],
    modules: {
      'store/client/session-calls.js': ({ SessionCalls }) => ({
        SessionCalls: class extends SessionCalls {
          unanswered() {
            return new Set();
          }
        },
      }),
    },
  },
  'a job is untracked before its outcome is acknowledged': {
    violates: 'an end is not given up',
    modules: {
      'worker/runs.js': ({ Runs }) => ({
        Runs: class extends Runs {
          #table;

          constructor(context, ...rest) {
            super(context, ...rest);
            this.#table = context.table;
          }

          ended(run, delivers) {
            super.ended(run, delivers);
            if (delivers) this.#table.untrack(run.lock);
          }
        },
      }),
    },
  },
  'session ids come again with the next start': {
    violates: 'session ids are new',
    reusesIds: true,
  },
  'a job is acknowledged before the store has it': {
    violates: 'nothing acknowledged is lost',
    client: (right) => ({
      ...right,
      add: (queue, jobs, call) => {
        const adding = right.add(queue, jobs, call);
        if (jobs.some(({ id }) => id === undefined)) return adding;
        adding.catch(() => undefined);
        return Promise.resolve(jobs.map(({ id }) => ({ id, status: 'added' })));
      },
    }),
  },
};
