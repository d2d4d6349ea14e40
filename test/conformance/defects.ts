// Stores with one defect each, made by bending a few verbs of a right one. Most are defects that queues in the field have or had.
import type { SettleStatus } from '../../src/job/outcome.js';
import type { BulkChange, Change, ListQuery, NewSession, Selection, Store, Write } from '../../src/store/contract/index.js';

function withToken(write: Write, token: string | undefined): Write {
  if (write.kind === 'event') return write;
  const { token: _, ...rest } = write;
  return token === undefined ? rest : { ...rest, token };
}

export interface Defect {
  /** Titles of the tests that must notice it. */
  noticedBy: RegExp;
  bend(right: Store): Partial<Store>;
}

export function bent(right: Store, { bend }: Pick<Defect, 'bend'>): Store {
  const verbs = bend(right);
  return new Proxy(right, {
    get(target, verb: keyof Store) {
      const value = Object.hasOwn(verbs, verb) ? verbs[verb] : target[verb];
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

const FAR_MS = 1e9;

export const DEFECTS: Record<string, Defect> = {
  'calls of all lanes are numbered as one': {
    noticedBy: /after a later call of another lane|although the other lane has continued/,
    bend: (right) => ({
      settle: (queue, outcomes, call, claim) =>
        right.settle(queue, outcomes, call && { ...call, lane: 0 }, claim && { ...claim, lane: 0 }),
      claim: (queue, request) => right.claim(queue, { ...request, lane: 0 }),
    }),
  },
  'the second lane is not remembered': {
    noticedBy: /although the other lane has continued/,
    bend: (right) => {
      let last = 2 ** 40;
      const renumbered = <T extends { seq: number; lane?: number }>(call: T): T => {
        last += 1;
        return call.lane === 1 ? { ...call, seq: last } : call;
      };
      return {
        settle: (queue, outcomes, call, claim) =>
          right.settle(
            queue,
            outcomes,
            call && renumbered(call),
            claim && { ...claim, seq: claim.lane === 1 ? last : claim.seq },
          ),
        claim: (queue, request) => right.claim(queue, renumbered(request)),
      };
    },
  },
  'settle by job id alone': {
    noticedBy: /S4-10 a stale token/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const current = await right.locks(queue, { jobIds: outcomes.map(({ jobId }) => jobId) });
        const forged = outcomes.map((outcome, index) => ({ ...outcome, token: current[index]?.token ?? outcome.token }));
        return right.settle(queue, forged, call, claim);
      },
    }),
  },
  'progress, data and logs are not checked against the lock': {
    noticedBy: /S4-10 a stale token/,
    bend: (right) => ({
      write: (queue, writes) =>
        right.write(
          queue,
          writes.map((write) => withToken(write, undefined)),
        ),
    }),
  },
  'extend by job id alone': {
    noticedBy: /S4-10 a stale token|S2-8/,
    bend: (right) => ({
      extend: async (queue, extensions) => {
        const current = await right.locks(queue, { jobIds: extensions.map(({ jobId }) => jobId) });
        return right.extend(
          queue,
          extensions.map((extension, index) => ({ ...extension, token: current[index]?.token ?? extension.token })),
        );
      },
    }),
  },
  'one token per worker': {
    noticedBy: /S4-10 a stale token \(revoked and run again by the same worker\)/,
    bend: (right) => ({
      claim: async (queue, request) => {
        const reply = await right.claim(queue, request);
        return { ...reply, jobs: reply.jobs.map((job) => ({ ...job, token: request.session })) };
      },
      settle: async (queue, outcomes, call, claim) => {
        const locks = await right.locks(queue, { jobIds: outcomes.map(({ jobId }) => jobId) });
        const forged = outcomes.map((outcome, index) => {
          const lock = locks[index];
          return lock !== undefined && lock.session === outcome.token ? { ...outcome, token: lock.token } : outcome;
        });
        return right.settle(queue, forged, call, claim);
      },
    }),
  },
  'an empty token counts as none': {
    noticedBy: /an empty token/,
    bend: (right) => ({
      write: (queue, writes) =>
        right.write(
          queue,
          writes.map((write) => withToken(write, 'token' in write && write.token !== '' ? write.token : undefined)),
        ),
    }),
  },
  'a refused finish is called done': {
    noticedBy: /two finishes with one token|opposite finish/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const reply = await right.settle(queue, outcomes, call, claim);
        return { ...reply, results: reply.results.map((): SettleStatus => 'done') };
      },
    }),
  },
  'a late finish is thrown away although nobody took the job': {
    noticedBy: /late finish with the current token/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const locks = await right.locks(queue, { jobIds: outcomes.map(({ jobId }) => jobId) });
        const judged = outcomes.map((outcome, index) =>
          (locks[index]?.endsInMs ?? 0) < 0 ? { ...outcome, token: 'refused' } : outcome,
        );
        return right.settle(queue, judged, call, claim);
      },
    }),
  },
  'a finish checks its lock first and acts later': {
    noticedBy: /^finish and sweep/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const locks = await right.locks(queue, { jobIds: outcomes.map(({ jobId }) => jobId) });
        await new Promise(setImmediate);
        const reply = await right.settle(queue, outcomes, call, claim);
        const checked = outcomes.map(({ token }, index): SettleStatus => (locks[index]?.token === token ? 'done' : 'lost'));
        return { ...reply, results: checked };
      },
    }),
  },
  'a swept session is told that it lives': {
    noticedBy: /S4-2/,
    bend: (right) => ({ renew: async (renewals) => (await right.renew(renewals)).map((reply) => ({ ...reply, alive: true })) }),
  },
  'a late heartbeat opens the session again': {
    noticedBy: /S4-2/,
    bend: (right) => {
      const opened = new Map<string, NewSession>();
      return {
        openSession: async (session) => {
          await right.openSession(session);
          opened.set(session.id, session);
        },
        renew: async (renewals) => {
          const replies = await right.renew(renewals);
          for (const [index, { id }] of renewals.entries()) {
            const session = opened.get(id);
            if (replies[index]?.alive === false && session !== undefined) await right.openSession(session).catch(() => {});
          }
          return right.renew(renewals);
        },
      };
    },
  },
  'renewal does not prolong': {
    noticedBy: /S4-1 renewal keeps/,
    bend: (right) => ({
      renew: async (renewals) => {
        const open = await Promise.all(
          renewals.map(async ({ queue, id }) => (await right.sessions(queue)).some((known) => known.id === id)),
        );
        return open.map((alive) => ({ alive, notices: [] }));
      },
    }),
  },
  'nothing is ever recovered': {
    noticedBy: /S4-1 renewal keeps/,
    bend: () => ({ sweep: async () => ({ stalled: [], failed: [], more: false }) }),
  },
  'renewal reaches into other queues': {
    noticedBy: /S4-3/,
    bend: (right) => {
      const homes = new Map<string, string>();
      return {
        openSession: async (session) => {
          homes.set(session.id, session.queue);
          await right.openSession(session);
        },
        renew: (renewals) =>
          right.renew(renewals.map((renewal) => ({ ...renewal, queue: homes.get(renewal.id) ?? renewal.queue }))),
      };
    },
  },
  'a sweep of one queue sweeps all': {
    noticedBy: /S4-3|sweep leaves the dead locks of another queue/,
    bend: (right) => {
      const queues = new Set<string>();
      return {
        openSession: async (session) => {
          queues.add(session.queue);
          await right.openSession(session);
        },
        sweep: async (queue, limit) => {
          for (const other of queues) if (other !== queue) await right.sweep(other, limit);
          return right.sweep(queue, limit);
        },
      };
    },
  },
  'any renewal keeps every session': {
    noticedBy: /S4-5/,
    bend: (right) => ({
      renew: async (renewals) => {
        for (const { queue } of renewals) {
          await right.renew((await right.sessions(queue)).map(({ id }) => ({ queue, id, acked: 0 })));
        }
        return right.renew(renewals);
      },
    }),
  },
  'a claim is not repeated but made anew': {
    noticedBy: /claim, same seq again/,
    bend: (right) => {
      let seq = 0;
      return { claim: (queue, request) => right.claim(queue, { ...request, seq: (seq += 1) }) };
    },
  },
  'a repeated claim is answered with nothing': {
    noticedBy: /S4-15 a claim repeated/,
    bend: (right) => {
      const seen = new Set<string>();
      return {
        claim: async (queue, request) => {
          const key = `${request.session} ${request.seq}`;
          const again = seen.has(key);
          seen.add(key);
          const reply = await right.claim(queue, request);
          return again ? { ...reply, jobs: [] } : reply;
        },
      };
    },
  },
  'a repeated settle is judged anew': {
    noticedBy: /settle, same call again/,
    bend: (right) => ({ settle: (queue, outcomes, _call, claim) => right.settle(queue, outcomes, undefined, claim) }),
  },
  'a repeated add adds again': {
    noticedBy: /add, same call again|S4-15 an add/,
    bend: (right) => {
      let seq = 0;
      return { add: (queue, jobs) => right.add(queue, jobs, { caller: 'forgetful', seq: (seq += 1) }) };
    },
  },
  'calls are remembered without their caller': {
    noticedBy: /next seq or another caller/,
    bend: (right) => ({ add: (queue, jobs, { seq }) => right.add(queue, jobs, { caller: 'anybody', seq }) }),
  },
  'two claims at once get the same jobs': {
    noticedBy: /claim at once never get the same job/,
    bend: (right) => {
      let running: ReturnType<Store['claim']> | undefined;
      return {
        claim: async (queue, request) => {
          running ??= right.claim(queue, request).finally(() => (running = undefined));
          return running;
        },
      };
    },
  },
  'the lock comes after the claim': {
    noticedBy: /grants the lock in the same step/,
    bend: (right) => ({
      claim: async (queue, request) => {
        const reply = await right.claim(queue, request);
        return { ...reply, jobs: reply.jobs.map((job) => ({ ...job, fence: job.fence + 1 })) };
      },
    }),
  },
  'an expired session still claims': {
    noticedBy: /expired session claims nothing/,
    bend: (right) => ({
      claim: async (queue, request) => {
        await right.renew([{ queue, id: request.session, acked: 0 }]);
        return right.claim(queue, request);
      },
    }),
  },
  'stalls are not counted': {
    noticedBy: /one more stall|S4-12 sweep fails/,
    bend: (right) => ({
      sweep: async (queue) => {
        const stalled: string[] = [];
        for (const { id, expiresInMs } of await right.sessions(queue)) {
          if (expiresInMs > 0) continue;
          stalled.push(...(await right.locks(queue, { session: id })).map(({ jobId }) => jobId));
          await right.closeSessions([{ queue, id }], 'closed');
        }
        return { stalled, failed: [], more: false };
      },
    }),
  },
  'over the stall limit the job is deleted': {
    noticedBy: /S4-12 sweep fails/,
    bend: (right) => ({
      sweep: async (queue, limit) => {
        const reply = await right.sweep(queue, limit);
        await right.change(queue, reply.failed, { kind: 'remove' });
        return reply;
      },
    }),
  },
  'a sweep knows no limit': {
    noticedBy: /at most `limit` locks/,
    bend: (right) => ({ sweep: (queue) => right.sweep(queue, FAR_MS) }),
  },
  'a shutdown counts as a crash': {
    noticedBy: /hands back its jobs at once without a stall/,
    bend: (right) => ({ closeSessions: (sessions) => right.closeSessions(sessions, 'crashed') }),
  },
  'revocations are lost': {
    noticedBy: /renew returns the revoked job/,
    bend: (right) => ({ renew: async (renewals) => (await right.renew(renewals)).map((reply) => ({ ...reply, notices: [] })) }),
  },
  'a revocation is told once': {
    noticedBy: /S4-15 a renewal with a lost reply|until they are acknowledged/,
    bend: (right) => {
      const told = new Map<string, number>();
      return {
        renew: async (renewals) => {
          const replies = await right.renew(
            renewals.map((renewal) => ({ ...renewal, acked: told.get(renewal.id) ?? renewal.acked })),
          );
          replies.forEach(({ notices }, index) => {
            const last = notices.at(-1);
            if (last !== undefined) told.set(renewals[index]?.id ?? '', last.number);
          });
          return replies;
        },
      };
    },
  },
  'timed locks live as long as their session': {
    noticedBy: /a timed lock ends at its own end/,
    bend: (right) => ({ claim: (queue, { timedMs: _, ...request }) => right.claim(queue, request) }),
  },
  'a lock that is extended alone stays in its session': {
    noticedBy: /extended alone expires although the session is renewed/,
    bend: (right) => ({
      extend: (queue, extensions) =>
        right.extend(
          queue,
          extensions.map(({ alone: _, ...extension }) => extension),
        ),
    }),
  },
  'a claim within settle goes first': {
    noticedBy: /claim sees the jobs that the outcomes freed/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const claimed = claim === undefined ? undefined : await right.claim(queue, claim);
        const { results } = await right.settle(queue, outcomes, call);
        return claimed === undefined ? { results } : { results, claimed };
      },
    }),
  },
  'a claim within settle does not see the pause': {
    noticedBy: /can finish in a paused queue/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const { paused } = await right.status(queue);
        if (paused) await right.configure(queue, { paused: false });
        const reply = await right.settle(queue, outcomes, call, claim);
        if (paused) await right.configure(queue, { paused: true });
        return reply;
      },
    }),
  },
  'everybody has a rate limit of their own': {
    noticedBy: /claims of all sessions together/,
    bend: (right) => ({ claim: (queue, { limit: _, ...request }) => right.claim(queue, request) }),
  },
  'a duplicate replaces the job': {
    noticedBy: /changes nothing when the id exists/,
    bend: (right) => ({
      add: async (queue, jobs, call) => {
        await right.change(
          queue,
          jobs.flatMap(({ id }) => (id === undefined ? [] : [id])),
          { kind: 'remove' },
        );
        return right.add(queue, jobs, call);
      },
    }),
  },
  'lifo is first in, first out': {
    noticedBy: /lifo jobs before waiting jobs/,
    bend: (right) => ({
      add: (queue, jobs, call) =>
        right.add(
          queue,
          jobs.map((job) => ({ ...job, lifo: false })),
          call,
        ),
    }),
  },
  'what was not begun has been started': {
    noticedBy: /settle return moves/,
    bend: (right) => ({
      settle: (queue, outcomes, call, claim) => {
        const forged = outcomes.map((outcome) =>
          outcome.kind === 'return' ? { ...outcome, kind: 'release' as const } : outcome,
        );
        return right.settle(queue, forged, call, claim);
      },
    }),
  },
  'released jobs go to the back': {
    noticedBy: /released job goes to the front/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const forged = outcomes.map((outcome) =>
          outcome.kind === 'release'
            ? { ...outcome, kind: 'retry' as const, reason: '', stacktrace: '[]', delayMs: 0, lifo: false }
            : outcome,
        );
        return right.settle(queue, forged, call, claim);
      },
    }),
  },
  'finished jobs are never removed': {
    noticedBy: /keep \{ count/,
    bend: (right) => ({
      settle: (queue, outcomes, call, claim) =>
        right.settle(
          queue,
          outcomes.map((outcome) => ('keep' in outcome ? { ...outcome, keep: {} } : outcome)),
          call,
          claim,
        ),
    }),
  },
  'a locked job can be removed': {
    noticedBy: /leaves a locked job/,
    bend: (right) => ({
      change: async (queue: string, target: string[] | Selection, change: Change) => {
        if (!Array.isArray(target)) return right.change(queue, target, change as BulkChange);
        if (change.kind === 'remove') await right.change(queue, target, { kind: 'revoke', reason: 'removed' });
        return right.change(queue, target, change);
      },
    }),
  },
  'lists know one direction': {
    noticedBy: /claim order or in reverse/,
    bend: (right) => ({
      jobs: ((queue: string, query: ListQuery) =>
        right.jobs(queue, Array.isArray(query) ? query : { ...query, asc: true })) as Store['jobs'],
    }),
  },
  'prioritized jobs are counted twice': {
    noticedBy: /counts equal the lengths of the lists|random verbs/,
    bend: (right) => ({
      status: async (queue) => {
        const status = await right.status(queue);
        return { ...status, counts: { ...status.counts, waiting: status.counts.waiting + status.counts.prioritized } };
      },
    }),
  },
  'events have gaps': {
    noticedBy: /event ids have no gaps/,
    bend: (right) => ({
      events: async (queue, after, limit) => {
        const reply = await right.events(queue, after, limit);
        return { ...reply, events: reply.events.filter(({ id }) => id % 7 !== 0) };
      },
    }),
  },
  'a stall is not told': {
    noticedBy: /sweep records stalled/,
    bend: (right) => ({
      events: async (queue, after, limit) => {
        const reply = await right.events(queue, after, limit);
        return { ...reply, events: reply.events.filter(({ name }) => name !== 'stalled') };
      },
    }),
  },
  'a watcher that stopped is called on': {
    noticedBy: /stopped watcher is not called again/,
    bend: (right) => ({
      watch: (queue, listener) => {
        right.watch(queue, listener);
        return () => {};
      },
    }),
  },
  'nobody is woken': {
    noticedBy: /called when the queue is resumed/,
    bend: () => ({ watch: () => () => {} }),
  },
  'JSON is read and written again': {
    noticedBy: /JSON text survives unchanged/,
    bend: (right) => ({
      add: (queue, jobs, call) =>
        right.add(
          queue,
          jobs.map((job) => ({ ...job, data: JSON.stringify(JSON.parse(job.data)) })),
          call,
        ),
    }),
  },
  'ids are compared without case': {
    noticedBy: /similar ids stay different/,
    bend: (right) => ({
      add: (queue, jobs, call) =>
        right.add(
          queue,
          jobs.map(({ id, ...job }) => (id === undefined ? job : { ...job, id: id.toLowerCase() })),
          call,
        ),
    }),
  },
  'a closed store goes on answering': {
    noticedBy: /STORE_CLOSED/,
    bend: () => ({ close: async () => {} }),
  },
};
