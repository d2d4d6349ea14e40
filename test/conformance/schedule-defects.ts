// Stores with one defect of schedules each.
import type { ClaimReply, ScheduleChange, ScheduleRecord, ScheduleReply, Store } from '../../src/store/contract/index.js';
import type { Defect } from './defects.js';

async function recordOf(store: Store, queue: string, id: string): Promise<ScheduleRecord | undefined> {
  return (await store.status(queue, { schedules: { ids: [id] } })).schedules?.records[0];
}

/** Bends each change on its own. */
function bendingChanges(bend: (store: Store, queue: string, change: ScheduleChange) => Promise<ScheduleChange>): Defect['bend'] {
  return (right) => ({
    schedule: async (queue, changes) => {
      const replies: ScheduleReply[] = [];
      for (const change of changes) replies.push(...(await right.schedule(queue, [await bend(right, queue, change)])));
      return replies;
    },
  });
}

/** Bends the reply of every claim. */
function bendingClaims(bend: (reply: ClaimReply) => ClaimReply): Defect['bend'] {
  return (right) => ({
    claim: async (queue, request) => bend(await right.claim(queue, request)),
    settle: async (queue, outcomes, call, claim) => {
      const reply = await right.settle(queue, outcomes, call, claim);
      return reply.claimed === undefined ? reply : { ...reply, claimed: bend(reply.claimed) };
    },
  });
}

async function underCurrentVersion(store: Store, queue: string, change: ScheduleChange): Promise<ScheduleChange> {
  const record = await recordOf(store, queue, change.id);
  return record === undefined ? change : { ...change, version: record.version };
}

export const SCHEDULE_DEFECTS: Record<string, Defect> = {
  'an advance ignores the version': {
    noticedBy: /a repeated advance is stale|a schedule that is not owing is not advanced/,
    bend: bendingChanges(async (store, queue, change) => {
      const record = await recordOf(store, queue, change.id);
      if (change.kind !== 'advance' || record === undefined) return change;
      const { id, version, spec, serial } = record;
      return { kind: 'put', id, version, spec, serial, next: change.next };
    }),
  },
  'a put ignores the version': {
    noticedBy: /a put under an old version changes nothing/,
    bend: bendingChanges(async (store, queue, change) =>
      change.kind === 'put' ? underCurrentVersion(store, queue, change) : change,
    ),
  },
  'a removal ignores the version': {
    noticedBy: /remove under an old version/,
    bend: bendingChanges(async (store, queue, change) =>
      change.kind === 'remove' ? underCurrentVersion(store, queue, change) : change,
    ),
  },
  'a claim leaves its schedule running': {
    noticedBy: /a claim of the next job makes the schedule owing in the same step/,
    bend: (right) => ({
      claim: async (queue, request) => {
        const reply = await right.claim(queue, request);
        for (const { id, debt } of reply.jobs) {
          if (debt === undefined) continue;
          const next = { at: debt.at, dueInMs: 0, count: debt.count, job: { ...PLAIN, id: `${id} again` } };
          await right.schedule(queue, [{ kind: 'advance', id: debt.id, version: debt.version, next }]);
        }
        return reply;
      },
    }),
  },
  'claims carry no debts': {
    noticedBy: /a claim of the next job makes the schedule owing in the same step/,
    bend: bendingClaims((reply) => ({ ...reply, jobs: reply.jobs.map(({ debt: _, ...job }) => job) })),
  },
  'claims do not say what is undone': {
    noticedBy: /claims say undone while a schedule is owing/,
    bend: bendingClaims(({ undone: _, ...reply }) => reply),
  },
  'serial schedules are not serial': {
    noticedBy: /a serial schedule is owing when its run|makes no second job/,
    bend: bendingChanges(async (_, __, change) => (change.kind === 'put' ? { ...change, serial: false } : change)),
  },
  'a removal by id takes next jobs': {
    noticedBy: /a next job that is (waiting|delayed) is not removed by its id/,
    bend: (right) => ({
      change: (async (queue: string, target: string[], change: Parameters<Store['change']>[2]) => {
        if (change.kind === 'remove' && Array.isArray(target)) {
          const { jobs } = await right.jobs(queue, target);
          for (const job of jobs) {
            const record = job?.scheduleId === undefined ? undefined : await recordOf(right, queue, job.scheduleId);
            if (record !== undefined) await right.schedule(queue, [{ kind: 'pause', id: record.id, version: record.version }]);
          }
        }
        return right.change(queue, target, change as never);
      }) as Store['change'],
    }),
  },
  'dueInMs is ignored': {
    noticedBy: /the job of a slot is delayed by dueInMs/,
    bend: bendingChanges(async (_, __, change) =>
      'next' in change && change.next !== undefined
        ? { ...change, next: { ...change.next, dueInMs: change.next.job.delayMs } }
        : change,
    ),
  },
  'a removal of a schedule leaves its delayed job': {
    noticedBy: /remove deletes the schedule and a delayed next job/,
    bend: (right) => ({
      schedule: async (queue, changes) => {
        for (const { kind, id } of changes) {
          const record = kind === 'remove' ? await recordOf(right, queue, id) : undefined;
          if (record?.nextJobId !== undefined) await right.change(queue, [record.nextJobId], { kind: 'promote' });
        }
        return right.schedule(queue, changes);
      },
    }),
  },
  'forget keeps schedules': {
    noticedBy: /forget deletes the schedules of an emptied queue/,
    bend: (right) => ({
      forget: async (queue, what) => ('all' in what ? right.forget(queue, { events: 0 }) : right.forget(queue, what)),
    }),
  },
};

const PLAIN = { name: 'work', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 1 };
