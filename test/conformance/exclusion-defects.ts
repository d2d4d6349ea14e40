// Stores with one defect each in what excludes: lock keys, caps, jobs taken by id, named locks.
import type { LockRequest, Store } from '../../src/store/contract/index.js';
import type { Defect } from './defects.js';

const FAR_MS = 1e9;

export const EXCLUSION_DEFECTS: Record<string, Defect> = {
  'keys mean nothing': {
    noticedBy: /one job of a key is active|one claim takes at most one|^claims of one key at once/,
    bend: (right) => ({
      add: (queue, jobs, call) =>
        right.add(
          queue,
          jobs.map(({ lockKey: _, ...job }) => job),
          call,
        ),
    }),
  },
  'keys are compared without case': {
    noticedBy: /odd keys/,
    bend: (right) => ({
      add: (queue, jobs, call) =>
        right.add(
          queue,
          jobs.map((job) => (job.lockKey === undefined ? job : { ...job, lockKey: job.lockKey.toLowerCase() })),
          call,
        ),
    }),
  },
  'a job that waits for its key holds up those behind it': {
    noticedBy: /not held up/,
    bend: (right) => {
      const keys = keysOf();
      return {
        add: keys.add(right),
        claim: async (queue, request) => {
          const [waiting, active] = await Promise.all([keys.in(right, queue, 'waiting'), keys.in(right, queue, 'active')]);
          const blocked = waiting.findIndex((key) => key !== undefined && active.includes(key));
          return right.claim(queue, blocked === -1 ? request : { ...request, count: Math.min(request.count, blocked) });
        },
      };
    },
  },
  'a key stays taken by a job that was put off': {
    noticedBy: /key is free again when its job is delayed/,
    bend: (right) => {
      const keys = keysOf();
      return {
        add: keys.add(right),
        settle: async (queue, outcomes, call, claim) => {
          const reply = await right.settle(queue, outcomes, call, claim);
          for (const { kind, jobId } of outcomes) {
            const lockKey = keys.of(jobId);
            if (kind !== 'delay' || lockKey === undefined) continue;
            const job = { id: 'ghost', name: 'g', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: true, timestamp: 0 };
            await right.add(queue, [{ ...job, lockKey }], { caller: 'ghost', seq: 1 });
            await right.claim(queue, { session: await ghost(right, queue), seq: 1, count: 1, jobIds: ['ghost'] });
          }
          return reply;
        },
      };
    },
  },
  'a refused finish frees the key': {
    noticedBy: /refused finish does not free the key/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const reply = await right.settle(queue, outcomes, call, claim);
        await right.change(
          queue,
          outcomes.filter((_, n) => reply.results[n] === 'lost').map(({ jobId }) => jobId),
          { kind: 'revoke', reason: 'r' },
        );
        return reply;
      },
    }),
  },
  'those that waited for a key go to the back when it is free': {
    noticedBy: /keep their places among all waiting jobs/,
    bend: (right) => {
      const keys = keysOf();
      return {
        add: keys.add(right),
        settle: async (queue, outcomes, call, claim) => {
          const reply = await right.settle(queue, outcomes, call, claim);
          const { jobs: waiting } = await right.jobs(queue, { lists: ['waiting'], start: 0, end: -1, asc: true });
          for (const { id, priority } of waiting) {
            if (keys.of(id) !== undefined) await right.change(queue, [id], { kind: 'priority', priority, lifo: false });
          }
          return reply;
        },
      };
    },
  },
  'those that wait for their key are not counted': {
    noticedBy: /counts, lists and records include/,
    bend: (right) => {
      const keys = keysOf();
      return {
        add: keys.add(right),
        status: async (queue) => {
          const status = await right.status(queue);
          const waiting = await keys.in(right, queue, 'waiting');
          const hidden = waiting.filter((key, n) => key !== undefined && waiting.indexOf(key) !== n).length;
          return { ...status, counts: { ...status.counts, waiting: status.counts.waiting - hidden } };
        },
      };
    },
  },
  'a cap is kept and not held': {
    noticedBy: /a cap limits the active jobs|^claims at once under a cap/,
    bend: (right) => {
      const caps = new Map<string, { maxActive: number } | null>();
      return {
        configure: async (queue, { cap, ...settings }) => {
          if (cap !== undefined) caps.set(queue, cap);
          await right.configure(queue, settings);
        },
        status: async (queue) => {
          const cap = caps.get(queue) ?? undefined;
          return { ...(await right.status(queue)), ...(cap !== undefined && { cap }) };
        },
      };
    },
  },
  'every session has a cap of its own': {
    noticedBy: /a cap limits the active jobs/,
    bend: (right) => ({
      claim: async (queue, request) => {
        const { cap } = await right.status(queue);
        if (cap === undefined) return right.claim(queue, request);
        const own = (await right.locks(queue, { session: request.session })).length;
        await right.configure(queue, { cap: null });
        const reply = await right.claim(queue, { ...request, count: Math.min(request.count, Math.max(0, cap.maxActive - own)) });
        await right.configure(queue, { cap });
        return reply;
      },
    }),
  },
  'whoever came first keeps all places under the cap': {
    noticedBy: /makes room for a later session|leaves the other sessions their shares/,
    bend: (right) => ({ openSession: (session) => right.openSession({ ...session, slots: 0 }) }),
  },
  'a cap outlives the queue': {
    noticedBy: /forget removes the cap/,
    bend: (right) => ({
      forget: async (queue, what) => {
        const { cap } = await right.status(queue);
        const removed = await right.forget(queue, what);
        await right.configure(queue, { cap: cap ?? null });
        return removed;
      },
    }),
  },
  'slots are told once': {
    noticedBy: /renew changes slots|when a renewal changes slots/,
    bend: (right) => ({ renew: (renewals) => right.renew(renewals.map(({ slots: _, ...renewal }) => renewal)) }),
  },
  'instances are forgotten': {
    noticedBy: /an open session is listed/,
    bend: (right) => ({
      sessions: async (queue) =>
        (await right.sessions(queue)).map((info) => ({ ...info, owner: { ...info.owner, instance: '' } })),
    }),
  },
  'jobs are taken in claim order, not in the order of their ids': {
    noticedBy: /takes exactly the named jobs, in that order/,
    bend: (right) => ({
      claim: (queue, { jobIds, ...request }) =>
        right.claim(queue, jobIds === undefined ? request : { ...request, jobIds: [...jobIds].sort() }),
    }),
  },
  'a job that is named is taken before it is due': {
    noticedBy: /takes only waiting jobs/,
    bend: (right) => ({
      claim: async (queue, request) => {
        await right.change(queue, request.jobIds ?? [], { kind: 'promote' });
        return right.claim(queue, request);
      },
    }),
  },
  'a pause holds back jobs that are named': {
    noticedBy: /pause, limits and a full cap/,
    bend: (right) => ({
      claim: async (queue, request) =>
        right.claim(queue, (await right.status(queue)).paused ? { ...request, count: 0 } : request),
    }),
  },
  'a full cap holds back jobs that are named': {
    noticedBy: /pause, limits and a full cap/,
    bend: (right) => ({
      claim: async (queue, request) => {
        const { cap, counts } = await right.status(queue);
        return right.claim(queue, counts.active >= (cap?.maxActive ?? FAR_MS) ? { ...request, count: 0 } : request);
      },
    }),
  },
  'jobs that are named are taken anew under the same number': {
    noticedBy: /a claim by id repeated with the same seq/,
    bend: (right) => {
      let seq = 0;
      return { claim: (queue, request) => right.claim(queue, { ...request, seq: (seq += 1) }) };
    },
  },
  'nobody stands in line': {
    noticedBy: /goes to the first in line|order of their first requests/,
    bend: (right) => ({ acquire: (queue, wishes) => right.acquire(queue, without(wishes)) }),
  },
  'whoever asks first passes the line': {
    noticedBy: /goes to the first in line, whichever|passes no lock waiter/,
    bend: (right) => {
      const known = new Map<string, LockRequest>();
      return {
        acquire: async (queue, wishes) => {
          for (const wish of wishes) known.set(wish.token, wish);
          const grants = await right.acquire(queue, wishes);
          if (!grants.some(({ status, endsInMs }) => status === 'taken' && endsInMs === undefined)) return grants;
          await right.letGo(queue, [...known.values()]);
          return right.acquire(queue, wishes);
        },
      };
    },
  },
  'asking again goes to the back of the line': {
    noticedBy: /order of their first requests/,
    bend: (right) => ({
      acquire: async (queue, wishes) => {
        for (const wish of wishes) {
          const [info] = await right.locks(queue, { names: [wish.name] });
          if (info?.token !== wish.token) await right.letGo(queue, [wish]);
        }
        return right.acquire(queue, wishes);
      },
    }),
  },
  'a place in line is kept for ever': {
    noticedBy: /lapses|has lapsed/,
    bend: (right) => ({
      acquire: (queue, wishes) =>
        right.acquire(
          queue,
          wishes.map((wish) => (wish.keepPlaceMs > 0 ? { ...wish, keepPlaceMs: FAR_MS } : wish)),
        ),
    }),
  },
  'a wish that does not wait stands in line all the same': {
    noticedBy: /takes no place|no longer waits leaves/,
    bend: (right) => ({
      acquire: (queue, wishes) =>
        right.acquire(
          queue,
          wishes.map((wish) => ({ ...wish, keepPlaceMs: wish.keepPlaceMs === 0 ? FAR_MS : wish.keepPlaceMs })),
        ),
    }),
  },
  'the same token takes the lock anew': {
    noticedBy: /same token returns the same fence/,
    bend: (right) => ({
      acquire: async (queue, wishes) => {
        for (const wish of wishes) {
          const [info] = await right.locks(queue, { names: [wish.name] });
          if (info?.token === wish.token) await right.letGo(queue, [wish]);
        }
        return right.acquire(queue, wishes);
      },
    }),
  },
  'named locks have fences of their own': {
    noticedBy: /fences grow across all names and jobs/,
    bend: (right) => {
      let fence = 0;
      return {
        acquire: async (queue, wishes) =>
          (await right.acquire(queue, wishes)).map((grant) =>
            grant.status === 'held' ? { ...grant, fence: (fence += 1) } : grant,
          ),
      };
    },
  },
  'any token lets go': {
    noticedBy: /only with the token of its holder/,
    bend: (right) => ({
      letGo: async (queue, locks) => {
        const current = await right.locks(queue, { names: locks.map(({ name }) => name) });
        return right.letGo(
          queue,
          locks.map(({ name, token }, n) => ({ name, token: current[n]?.token ?? token })),
        );
      },
    }),
  },
  'a lock is taken until somebody sweeps': {
    noticedBy: /is free before a sweep/,
    bend: (right) => ({
      acquire: async (queue, wishes) => {
        const current = await right.locks(queue, { names: wishes.map(({ name }) => name) });
        if (current.some((info) => info !== undefined && info.endsInMs < 0))
          return wishes.map(() => ({ status: 'taken', ahead: 0 }));
        return right.acquire(queue, wishes);
      },
    }),
  },
  'a late renewal brings back a holder whose lock was taken': {
    noticedBy: /ends that session|^a late renewal and a request/,
    bend: (right) => ({ renew: async (renewals) => (await right.renew(renewals)).map((reply) => ({ ...reply, alive: true })) }),
  },
  'a dead session gets a lock': {
    noticedBy: /gets neither a lock nor a place/,
    bend: (right) => ({
      acquire: async (queue, wishes) => {
        const session = await ghost(right, queue);
        return right.acquire(
          queue,
          wishes.map((wish) => ({ ...wish, session })),
        );
      },
    }),
  },
  'the places of the dead hold up the living': {
    noticedBy: /expired session does not block the line/,
    bend: (right) => ({
      acquire: async (queue, wishes) => {
        const session = await ghost(right, queue);
        return right.acquire(
          queue,
          wishes.map((wish) => (wish.keepPlaceMs > 0 ? { ...wish, session } : wish)),
        );
      },
    }),
  },
  'named locks outlive a session that is closed': {
    noticedBy: /closing a session .* releases its named locks/,
    bend: (right) => {
      const names = namesOf();
      return {
        acquire: names.acquire(right),
        closeSessions: (sessions, how) =>
          names.keeping(right, sessions[0]?.queue ?? '', () => right.closeSessions(sessions, how)),
      };
    },
  },
  'named locks outlive a sweep': {
    noticedBy: /sweep releases the named locks and places of dead sessions/,
    bend: (right) => {
      const names = namesOf();
      return {
        acquire: names.acquire(right),
        sweep: (queue, limit) => names.keeping(right, queue, () => right.sweep(queue, limit)),
      };
    },
  },
  'a sweep of named locks knows no limit': {
    noticedBy: /at most `limit` jobs, named locks/,
    bend: (right) => ({
      sweep: async (queue, limit) => {
        const reply = await right.sweep(queue, limit);
        return reply.stalled.length + reply.failed.length === 0 ? right.sweep(queue, FAR_MS) : reply;
      },
    }),
  },
  'only events wake': {
    noticedBy: /named lock or a place in line|when a cap is set/,
    bend: (right) => ({
      watch: (queue, listener) => {
        let last = 0;
        void right.events(queue, undefined, 0).then((reply) => {
          last = reply.last;
        });
        return right.watch(queue, () => {
          void right.events(queue, undefined, 0).then((reply) => {
            if (reply.last !== last) listener();
            last = reply.last;
          });
        });
      },
    }),
  },
};

/** A session that nobody closes. */
async function ghost(right: Store, queue: string): Promise<string> {
  const owner = { host: 'h', pid: 1, name: 'ghost', instance: 'ghost' };
  await right.openSession({ queue, id: 'ghost', owner, durationMs: FAR_MS, maxStalls: 1, slots: 0 }).catch(() => undefined);
  return 'ghost';
}

function without(wishes: LockRequest[]): LockRequest[] {
  return wishes.map((wish) => ({ ...wish, keepPlaceMs: 0 }));
}

/** Remembers the keys of jobs, which a store does not tell. */
function keysOf() {
  const known = new Map<string, string>();
  return {
    of: (id: string) => known.get(id),
    in: async (right: Store, queue: string, list: 'waiting' | 'active') => {
      const { jobs: records } = await right.jobs(queue, { lists: [list], start: 0, end: -1, asc: true });
      return records.sort((a, b) => (a.id < b.id ? -1 : 1)).map(({ id }) => known.get(id));
    },
    add:
      (right: Store): Store['add'] =>
      async (queue, jobs, call) => {
        for (const { id, lockKey } of jobs) if (id !== undefined && lockKey !== undefined) known.set(id, lockKey);
        return right.add(queue, jobs, call);
      },
  };
}

/** Remembers who holds names, and lets nobody lose them. */
function namesOf() {
  const known = new Map<string, LockRequest>();
  return {
    acquire:
      (right: Store): Store['acquire'] =>
      async (queue, wishes) => {
        for (const wish of wishes) known.set(wish.token, wish);
        return right.acquire(queue, wishes);
      },
    keeping: async <T>(right: Store, queue: string, act: () => Promise<T>): Promise<T> => {
      const holders = await right.locks(queue, { names: [...known.values()].map(({ name }) => name) });
      const reply = await act();
      const session = await ghost(right, queue);
      for (const holder of holders) {
        if (holder !== undefined)
          await right.acquire(queue, [{ name: holder.name, token: holder.token, session, keepPlaceMs: 0 }]);
      }
      return reply;
    },
  };
}
