// Stores with one defect of steps, signals or cancel each.
import type { Outcome } from '../../src/job/outcome.js';
import type { Change, ChangeReply, Selection, Store, Write, WriteReply } from '../../src/store/contract/index.js';
import type { Defect } from './defects.js';

const RANDOM_WORK = 'random verbs keep every invariant';

function noticedBy(titles: string): RegExp {
  return new RegExp(`${titles}|${RANDOM_WORK}`);
}

/** Bends each write of a step, or its reply. */
function bendingSteps(
  bend: (right: Store, queue: string, step: Extract<Write, { kind: 'step' }>) => Promise<WriteReply>,
): Defect['bend'] {
  return (right) => ({
    write: async (queue, writes) => {
      const replies: WriteReply[] = [];
      for (const write of writes) {
        const reply = write.kind === 'step' ? await bend(right, queue, write) : (await right.write(queue, [write]))[0];
        if (reply !== undefined) replies.push(reply);
      }
      return replies;
    },
  });
}

async function once(right: Store, queue: string, write: Write): Promise<WriteReply> {
  return (await right.write(queue, [write]))[0] ?? { status: 'missing' };
}

function bendingOutcomes(bend: (outcome: Outcome) => Outcome): Defect['bend'] {
  return (right) => ({ settle: (queue, outcomes, call, claim) => right.settle(queue, outcomes.map(bend), call, claim) });
}

function bendingCancels(
  bend: (right: Store, queue: string, target: string[] | Selection, change: Change) => Promise<ChangeReply>,
): Defect['bend'] {
  return (right) => ({
    change: (async (queue: string, target: string[] | Selection, change: Change) =>
      change.kind === 'cancel'
        ? bend(right, queue, target, change)
        : right.change(queue, target as string[], change)) as Store['change'],
  });
}

export const STEP_DEFECTS: Record<string, Defect> = {
  'a stale token records a step': {
    noticedBy: noticedBy('a stale token records nothing'),
    bend: bendingSteps((right, queue, { token: _stale, ...step }) => once(right, queue, step)),
  },
  'a second write of a step gets its own value back': {
    noticedBy: noticedBy('returns the recorded value'),
    bend: bendingSteps(async (right, queue, step) => {
      const reply = await once(right, queue, step);
      return reply.status === 'done' ? { ...reply, value: step.value } : reply;
    }),
  },
  'steps come in the order of their names': {
    noticedBy: noticedBy('one call records many steps in order'),
    bend: (right) => ({
      jobs: (async (queue: string, query: { stepsOf: string }) => {
        const found = await right.jobs(queue, query);
        if ('steps' in found) found.steps.sort((a, b) => a.name.localeCompare(b.name));
        return found;
      }) as unknown as Store['jobs'],
    }),
  },
  'a delay forgets its step': {
    noticedBy: noticedBy('a delay records its step'),
    bend: bendingOutcomes((outcome) => {
      if (outcome.kind !== 'delay') return outcome;
      const { step: _forgotten, awaits: _too, ...delay } = outcome;
      return delay;
    }),
  },
  'a signal wakes no job': {
    noticedBy: noticedBy('the awaited signal moves a delayed job to waiting'),
    bend: bendingOutcomes((outcome) => {
      if (outcome.kind !== 'delay') return outcome;
      const { awaits: _forgotten, ...delay } = outcome;
      return delay;
    }),
  },
  'any signal wakes a delayed job': {
    noticedBy: noticedBy('the awaited signal moves a delayed job to waiting'),
    bend: bendingSteps(async (right, queue, step) => {
      const reply = await once(right, queue, step);
      if (step.token === undefined && reply.status === 'done') await right.change(queue, [step.jobId], { kind: 'promote' });
      return reply;
    }),
  },
  'a retry from a step keeps the later ones': {
    noticedBy: noticedBy('from a step, it drops that one and the later ones'),
    bend: (right) => ({
      change: (async (queue: string, target: string[], { fromStep: _ignored, ...change }: Change & { fromStep?: string }) =>
        right.change(queue, target, change as Change)) as Store['change'],
    }),
  },
  'a finished job takes signals': {
    noticedBy: noticedBy('a signal is recorded without a token in every state but the finished ones'),
    bend: bendingSteps(async (right, queue, step) => {
      const reply = await once(right, queue, step);
      return reply.status === 'ended' ? { status: 'done', value: step.value } : reply;
    }),
  },
  'a cancel takes the lock of a running job away': {
    noticedBy: noticedBy('an active job stays active and locked'),
    bend: bendingCancels(async (right, queue, target, change) => {
      if (Array.isArray(target)) await right.change(queue, target, { kind: 'revoke', reason: 'r' });
      return right.change(queue, target as string[], change);
    }),
  },
  'a cancel only tells the session': {
    noticedBy: noticedBy('fails a cancelled job instead'),
    bend: (right) => {
      const cancelled = new Set<string>();
      return {
        change: (async (queue: string, target: string[], change: Change) => {
          if (change.kind === 'cancel' && Array.isArray(target)) for (const id of target) cancelled.add(id);
          return right.change(queue, target, change);
        }) as Store['change'],
        settle: async (queue, outcomes, call, claim) => {
          const reply = await right.settle(queue, outcomes, call, claim);
          const back = outcomes.filter(({ kind, jobId }) => kind === 'release' && cancelled.has(jobId)).map(({ jobId }) => jobId);
          const retry = { kind: 'retry', from: 'failed', resetAttemptsMade: false, resetAttemptsStarted: false } as const;
          if (back.length > 0) await right.change(queue, back, retry);
          return reply;
        },
      };
    },
  },
  'a cancel leaves waiting jobs to their next claim': {
    noticedBy: noticedBy('cancel fails waiting, prioritized and delayed jobs'),
    bend: bendingCancels(async (right, queue, target, change) => {
      if (!Array.isArray(target)) return right.change(queue, target, change as Extract<Change, { kind: 'cancel' }>);
      const { jobs } = await right.jobs(queue, target);
      const active = jobs.flatMap((job) => (job?.state === 'active' ? [job.id] : []));
      return { ...(await right.change(queue, active, change)), changed: target };
    }),
  },
  'a session learns of a cancel again and again': {
    noticedBy: noticedBy('its session gets one notice'),
    bend: (right) => ({ renew: (renewals) => right.renew(renewals.map((renewal) => ({ ...renewal, acked: 0 }))) }),
  },
  'no session is told that it has a notice': {
    noticedBy: noticedBy('its session gets one notice'),
    bend: (right) => ({
      checkSessions: async (sessions) =>
        (await right.checkSessions(sessions)).map(({ unsuspected }) => ({ unsuspected, noticed: false })),
    }),
  },
};
