// Stores with one defect each of rates, metrics or events of users.
import type { ClaimRequest, QueueMetrics, QueueStatus, Store } from '../../src/store/contract/index.js';
import type { Defect } from './defects.js';

/** Runs a call without the rate of the queue, and puts the rate back. */
async function withoutRate<T>(store: Store, queue: string, call: () => Promise<T>): Promise<T> {
  const { rate } = await store.status(queue);
  if (rate === undefined) return call();
  await store.configure(queue, { rate: null });
  const reply = await call();
  await store.configure(queue, { rate });
  return reply;
}

/** Ends the window and leaves a block as it is. */
async function endWindow(store: Store, queue: string): Promise<void> {
  const { blockedMs } = await store.status(queue);
  await store.configure(queue, { blockedMs: 0 });
  if (blockedMs !== undefined) await store.configure(queue, { blockedMs });
}

/** Bends each claim, alone and within settle. */
function bendingClaims(bend: <T>(store: Store, queue: string, request: ClaimRequest, claim: () => Promise<T>) => Promise<T>) {
  return (right: Store): Partial<Store> => ({
    claim: (queue, request) => bend(right, queue, request, () => right.claim(queue, request)),
    settle: (queue, outcomes, call, request) => {
      const settle = () => right.settle(queue, outcomes, call, request);
      return request === undefined ? settle() : bend(right, queue, request, settle);
    },
  });
}

/** Bends the metrics in a status. */
function bendingMetrics(bend: (metrics: QueueMetrics) => QueueMetrics): Defect['bend'] {
  return (right) => ({
    status: async (queue, ask) => {
      const { metrics, ...status } = await right.status(queue, ask);
      return metrics === undefined ? status : { ...status, metrics: bend(metrics) };
    },
  });
}

/** Adds to the count of failed jobs of a queue that counts. */
class Miscounts {
  readonly #extra = new Map<string, number>();

  add(queue: string, count: number): void {
    this.#extra.set(queue, (this.#extra.get(queue) ?? 0) + count);
  }

  status(right: Store, kind: 'completed' | 'failed'): Store['status'] {
    return async (queue, ask) => {
      const status: QueueStatus = await right.status(queue, ask);
      if (status.metrics === undefined || ask?.metrics?.kind !== kind) return status;
      return { ...status, metrics: { ...status.metrics, count: status.metrics.count + (this.#extra.get(queue) ?? 0) } };
    };
  }
}

export const RATE_DEFECTS: Record<string, Defect> = {
  'the window of a rate is not shared by sessions': {
    noticedBy: /a rate limits the claims of all sessions together/,
    bend: (right) => {
      let last = '';
      return bendingClaims(async (store, queue, { session }, claim) => {
        if (session !== last) await endWindow(store, queue);
        last = session;
        return claim();
      })(right);
    },
  },
  'a claim within settle ignores the rate': {
    noticedBy: /a claim within settle keeps to the rate/,
    bend: (right) => ({
      settle: (queue, outcomes, call, claim) => withoutRate(right, queue, () => right.settle(queue, outcomes, call, claim)),
    }),
  },
  'a claim with a limit of its own ignores the rate': {
    noticedBy: /the max of the queue and the duration of the claim apply/,
    bend: bendingClaims((store, queue, { limit }, claim) => (limit === undefined ? claim() : withoutRate(store, queue, claim))),
  },
  'a repeated claim uses up the window again': {
    noticedBy: /a repeated claim returns its jobs again, and uses up the window once/,
    bend: (right) => {
      const seen = new Set<string>();
      return {
        claim: async (queue, request) => {
          const reply = await right.claim(queue, request);
          const key = JSON.stringify([queue, request.session, request.seq, request.lane]);
          const { rate } = await right.status(queue);
          if (seen.has(key) && rate !== undefined && reply.jobs.length > 0)
            await right.configure(queue, { rate: { ...rate, max: Math.max(1, rate.max - reply.jobs.length) } });
          seen.add(key);
          return reply;
        },
      };
    },
  },
  'a job that is put back gives its start back': {
    noticedBy: /a released job stays counted in its window/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const reply = await right.settle(queue, outcomes, call, claim);
        if (outcomes.some(({ kind }) => kind === 'release') && reply.results.includes('done')) await endWindow(right, queue);
        return reply;
      },
    }),
  },
  'a change of the rate opens a new window': {
    noticedBy: /a change or removal of the rate applies at once, and the window stays open/,
    bend: (right) => ({
      configure: async (queue, settings) => {
        if (settings.rate !== undefined) await endWindow(right, queue);
        await right.configure(queue, settings);
      },
    }),
  },
  'a block ends the window': {
    noticedBy: /the status shows rate, window and block/,
    bend: (right) => ({
      configure: async (queue, settings) => {
        if ((settings.blockedMs ?? 0) > 0) await endWindow(right, queue);
        await right.configure(queue, settings);
      },
    }),
  },
  'a forgotten queue keeps its rate': {
    noticedBy: /forget of an emptied queue removes the rate/,
    bend: (right) => ({
      forget: async (queue, what) => {
        const { rate } = await right.status(queue);
        const forgotten = await right.forget(queue, what);
        if ('all' in what && rate !== undefined) await right.configure(queue, { rate });
        return forgotten;
      },
    }),
  },
  'metrics count attempts': {
    noticedBy: /counts completed jobs and jobs that failed for good/,
    bend: (right) => {
      const miscounts = new Miscounts();
      return {
        status: miscounts.status(right, 'failed'),
        settle: async (queue, outcomes, call, claim) => {
          const reply = await right.settle(queue, outcomes, call, claim);
          miscounts.add(queue, outcomes.filter(({ kind }, n) => kind === 'retry' && reply.results[n] === 'done').length);
          return reply;
        },
      };
    },
  },
  'metrics count a repeated settle again': {
    noticedBy: /a repeated settle counts once/,
    bend: (right) => {
      const miscounts = new Miscounts();
      const seen = new Set<string>();
      return {
        status: miscounts.status(right, 'completed'),
        settle: async (queue, outcomes, call, claim) => {
          const reply = await right.settle(queue, outcomes, call, claim);
          for (const [n, { kind, token }] of outcomes.entries()) {
            if (kind !== 'completed' || reply.results[n] !== 'done') continue;
            if (seen.has(token)) miscounts.add(queue, 1);
            seen.add(token);
          }
          return reply;
        },
      };
    },
  },
  'metrics miss jobs that stalled too often': {
    noticedBy: /counts a job that stalled too often as failed/,
    bend: (right) => {
      const miscounts = new Miscounts();
      return {
        status: miscounts.status(right, 'failed'),
        sweep: async (queue, limit) => {
          const reply = await right.sweep(queue, limit);
          miscounts.add(queue, -reply.failed.length);
          return reply;
        },
      };
    },
  },
  'the running minute is among the points': {
    noticedBy: /each whole minute with finished jobs is a point/,
    bend: bendingMetrics((metrics) =>
      metrics.current === undefined
        ? metrics
        : { ...metrics, points: [metrics.current.count, ...metrics.points], total: metrics.total + 1 },
    ),
  },
  'minutes without finished jobs are left out': {
    noticedBy: /minutes without are zeros/,
    bend: bendingMetrics((metrics) => ({ ...metrics, points: metrics.points.filter((point) => point > 0) })),
  },
  'counts per priority leave out the jobs of a paused queue': {
    noticedBy: /counts the waiting jobs of each priority, also in a paused queue/,
    bend: (right) => ({
      status: async (queue, ask) => {
        const { priorities, ...status } = await right.status(queue, ask);
        if (priorities === undefined) return status;
        return { ...status, priorities: status.paused ? priorities.map(() => 0) : priorities };
      },
    }),
  },
  'an event of a user is dropped if its call writes to a missing job': {
    noticedBy: /a write to a missing job leaves the events beside it alone/,
    bend: (right) => ({
      write: async (queue, writes) => {
        const ids = writes.flatMap((write) => (write.kind === 'event' ? [] : [write.jobId]));
        const { jobs } = await right.jobs(queue, ids);
        if (!jobs.includes(undefined)) return right.write(queue, writes);
        const rest = await right.write(
          queue,
          writes.filter(({ kind }) => kind !== 'event'),
        );
        return writes.map(({ kind }) => (kind === 'event' ? { status: 'done' } : (rest.shift() ?? { status: 'missing' })));
      },
    }),
  },
};
