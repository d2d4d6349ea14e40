// Stores with one defect of deduplication each.
import type { Deduplication } from '../../src/job/deduplication.js';
import type { NewJob } from '../../src/job/record.js';
import type { Store } from '../../src/store/contract/index.js';
import type { Defect } from './defects.js';

/** Bends the deduplication of every job that is added. */
function bendingModes(bend: (mode: Deduplication) => Deduplication | undefined): Defect['bend'] {
  const bentJob = ({ deduplication, ...job }: NewJob): NewJob => {
    const mode = deduplication && bend(deduplication);
    return mode === undefined ? job : { ...job, deduplication: mode };
  };
  return (right) => ({ add: (queue, jobs, call) => right.add(queue, jobs.map(bentJob), call) });
}

async function ownerOf(store: Store, queue: string, { deduplication }: NewJob): Promise<string | undefined> {
  if (deduplication === undefined) return undefined;
  return (await store.status(queue, { deduplication: [deduplication.id] })).deduplication?.[0];
}

const FAR_MS = 1e9;

export const DEDUPLICATION_DEFECTS: Record<string, Defect> = {
  'deduplication is ignored': {
    noticedBy: /S7-1 fifty adds at once with one deduplication id make one job/,
    bend: bendingModes(() => undefined),
  },
  'an add looks for the owner first and adds later': {
    noticedBy: /S7-1 fifty adds at once with one deduplication id make one job/,
    bend: (right) => ({
      add: async (queue, jobs, call) => {
        const owner = jobs[0] && (await ownerOf(right, queue, jobs[0]));
        if (owner !== undefined) return [{ id: owner, status: 'deduplicated' }];
        await new Promise(setImmediate);
        const ids = jobs.flatMap(({ deduplication }) => deduplication?.id ?? []);
        await right.forget(queue, { deduplication: ids });
        return right.add(queue, jobs, call);
      },
    }),
  },
  'a simple entry outlives its owner': {
    noticedBy: /a simple entry ends when its owner is (completed|failed)/,
    bend: bendingModes((mode) => ({ ttlMs: FAR_MS, ...mode })),
  },
  'an entry with a time ends with its owner': {
    noticedBy: /counts after its owner has ended|removed on finishing|pushed out/,
    bend: bendingModes(({ ttlMs: _, ...mode }) => mode),
  },
  'every add extends the entry': {
    noticedBy: /does not change the end of an entry without extend/,
    bend: bendingModes((mode) => ({ ...mode, extend: true })),
  },
  'extend is ignored': {
    noticedBy: /extend lets the time of an entry start again/,
    bend: bendingModes(({ extend: _, ...mode }) => mode),
  },
  'replace removes owners in any state': {
    noticedBy: /replace leaves an owner that is waiting/,
    bend: (right) => ({
      add: async (queue, jobs, call) => {
        for (const job of jobs.filter(({ deduplication }) => deduplication?.replaceDelayed)) {
          const owner = await ownerOf(right, queue, job);
          if (owner !== undefined) await right.change(queue, [owner], { kind: 'remove' });
        }
        return right.add(queue, jobs, call);
      },
    }),
  },
  'drafts are dropped': {
    noticedBy: /a draft is added in the same step/,
    bend: bendingModes(({ keepLastIfActive: _, ...mode }) => mode),
  },
  'the first draft stays': {
    noticedBy: /the last of many drafts is added/,
    bend: (right) => {
      const kept = new Set<string>();
      return {
        add: async (queue, jobs, call) => {
          const [job] = jobs;
          const id = job?.deduplication?.id ?? '';
          if (job === undefined || !kept.has(id)) {
            const replies = await right.add(queue, jobs, call);
            if (replies.some(({ status }) => status === 'deduplicated')) kept.add(id);
            return replies;
          }
          const { keepLastIfActive: _, ...mode } = { id, ...job.deduplication };
          return right.add(queue, [{ ...job, deduplication: mode }], call);
        },
      };
    },
  },
  'a repeated settle adds the draft again': {
    noticedBy: /a repeated settle adds no second draft/,
    bend: (right) => {
      const settled = new Set<string>();
      return {
        settle: async (queue, outcomes, call, claim) => {
          for (const { jobId } of outcomes) {
            const [job] = (await right.jobs(queue, [jobId])).jobs;
            if (settled.has(jobId) && job !== undefined) {
              const { name, data, opts, priority, timestamp } = job;
              const again = { name, data, opts, priority, timestamp, delayMs: 0, lifo: false };
              await right.add(queue, [again], { caller: `again-${jobId}`, seq: 1 });
            }
            settled.add(jobId);
          }
          return right.settle(queue, outcomes, call, claim);
        },
      };
    },
  },
  'a repeated add is judged again': {
    noticedBy: /a repeated add returns the first reply, also when the owner has ended/,
    bend: (right) => {
      let calls = 0;
      return { add: (queue, jobs, call) => right.add(queue, jobs, { ...call, seq: (calls += 1) }) };
    },
  },
  'forget ignores ownedBy': {
    noticedBy: /forget with ownedBy/,
    bend: (right) => ({
      forget: (queue, what) => right.forget(queue, 'deduplication' in what ? { deduplication: what.deduplication } : what),
    }),
  },
  'a retried job does not own its entry': {
    noticedBy: /a finished job that is retried owns its entry again/,
    bend: (right) => ({
      change: (async (queue: string, target: string[], change: Parameters<Store['change']>[2]) => {
        const reply = await right.change(queue, target, change as never);
        const { jobs } = await right.jobs(queue, reply.changed);
        for (const job of change.kind === 'retry' ? jobs : []) {
          if (job?.deduplicationId === undefined) continue;
          await right.forget(queue, { deduplication: [job.deduplicationId], ownedBy: job.id });
        }
        return reply;
      }) as Store['change'],
    }),
  },
};
