// Stores with one defect of groups each.
import type { ClaimReply, ClaimRequest, GroupRules, QueueSettings, Store } from '../../src/store/contract/index.js';
import type { NewJob } from '../../src/job/record.js';
import type { Defect } from './defects.js';

const FAR_MS = 1e9;

function bendingJobs(bend: (job: NewJob) => NewJob): Defect['bend'] {
  return (right) => ({ add: (queue, jobs, call) => right.add(queue, jobs.map(bend), call) });
}

function bendingSettings(bend: (settings: QueueSettings) => QueueSettings): Defect['bend'] {
  return (right) => ({ configure: (queue, settings) => right.configure(queue, bend(settings)) });
}

type Claim = (queue: string, request: ClaimRequest) => Promise<ClaimReply>;

/** Bends claims, also those of settles. */
function bendingClaims(bend: (right: Store) => Claim): Defect['bend'] {
  return (right) => {
    const claim = bend(right);
    return {
      claim,
      settle: async (queue, outcomes, call, request) => {
        const { results } = await right.settle(queue, outcomes, call);
        return request === undefined ? { results } : { results, claimed: await claim(queue, request) };
      },
    };
  };
}

/** Makes a job active that nobody sees end, in the group of each of these jobs. */
async function takePlaces(right: Store, queue: string, jobIds: string[]): Promise<void> {
  const { jobs } = await right.jobs(queue, jobIds);
  for (const group of jobs.flatMap((job) => job?.group ?? [])) {
    const job = { id: `ghost in ${group}`, name: 'g', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: true, timestamp: 0 };
    const session = `ghost in ${group}`;
    const owner = { host: 'h', pid: 1, name: 'ghost', instance: 'i' };
    if ((await right.sessions(queue)).some(({ id }) => id === session)) continue;
    await right.openSession({ queue, id: session, owner, durationMs: FAR_MS, maxStalls: 1, slots: 1 });
    await right.add(queue, [{ ...job, group }], { caller: session, seq: 1 });
    await right.claim(queue, { session, seq: 1, count: 1, jobIds: [job.id] });
  }
}

export const GROUP_DEFECTS: Record<string, Defect> = {
  'groups mean nothing': {
    noticedBy: /groups take turns|at most maxActive jobs of each group/,
    bend: bendingJobs(({ group: _, ...job }) => job),
  },
  'groups are compared without case': {
    noticedBy: /keys of groups may be any text/,
    bend: bendingJobs((job) => (job.group === undefined ? job : { ...job, group: job.group.toLowerCase() })),
  },
  'jobs without a group are served before all groups': {
    noticedBy: /groups take turns/,
    bend: bendingClaims((right) => async (queue, request) => {
      const { jobs } = await right.jobs(queue, { lists: ['waiting'], start: 0, end: -1, asc: true });
      const { paused } = await right.status(queue);
      const plain = jobs.filter(({ group }) => group === undefined).map(({ id }) => id);
      return right.claim(queue, paused || plain.length === 0 ? request : { jobIds: plain, ...request });
    }),
  },
  'claims go by the list of waiting jobs, not by turns': {
    noticedBy: /groups take turns|small groups do not wait/,
    bend: bendingClaims((right) => async (queue, request) => {
      const { jobs } = await right.jobs(queue, { lists: ['waiting', 'prioritized'], start: 0, end: -1, asc: true });
      const { paused } = await right.status(queue);
      return right.claim(queue, paused ? request : { jobIds: jobs.map(({ id }) => id), ...request });
    }),
  },
  'one job more than maxActive is active': {
    noticedBy: /at most maxActive jobs of each group|claims at once never/,
    bend: bendingSettings(({ groups, ...settings }) =>
      groups?.maxActive === undefined
        ? { ...settings, ...(groups !== undefined && { groups }) }
        : { ...settings, groups: { ...groups, maxActive: groups.maxActive + 1 } },
    ),
  },
  'a place stays taken by a job that was put off': {
    noticedBy: /place in a group is free again when its job is delayed/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const reply = await right.settle(queue, outcomes, call);
        const delayed = outcomes.filter(({ kind }, n) => kind === 'delay' && reply.results[n] === 'done');
        await takePlaces(
          right,
          queue,
          delayed.map(({ jobId }) => jobId),
        );
        return claim === undefined ? reply : { ...reply, claimed: await right.claim(queue, claim) };
      },
    }),
  },
  'a place stays taken by a job that was swept': {
    noticedBy: /place in a group is free again when its job has stalled/,
    bend: (right) => ({
      sweep: async (queue, limit) => {
        const reply = await right.sweep(queue, limit);
        await takePlaces(right, queue, [...reply.stalled, ...reply.failed]);
        return reply;
      },
    }),
  },
  'a refused finish frees the place': {
    noticedBy: /refused or repeated finish frees no place/,
    bend: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const reply = await right.settle(queue, outcomes, call, claim);
        const lost = outcomes.filter((_, n) => reply.results[n] === 'lost').map(({ jobId }) => jobId);
        await right.change(queue, lost, { kind: 'revoke', reason: 'r' });
        return reply;
      },
    }),
  },
  'a claim reads the active jobs of a group first and takes its jobs later': {
    noticedBy: /claims at once never/,
    bend: (right) => {
      const rules = new Map<string, GroupRules>();
      return {
        configure: async (queue, { groups, ...settings }) => {
          if (groups !== undefined) rules.set(queue, groups ?? {});
          await right.configure(queue, settings);
        },
        claim: async (queue, request) => {
          const most = rules.get(queue)?.maxActive ?? FAR_MS;
          const keys = (await right.status(queue, { groups: { limit: 100 } })).groups?.groups ?? [];
          const full = keys.filter(({ active }) => active >= most).map(({ key }) => key);
          const { jobs } = await right.jobs(queue, { lists: ['waiting'], start: 0, end: -1, asc: true });
          const jobIds = jobs.filter(({ group }) => group === undefined || !full.includes(group)).map(({ id }) => id);
          return right.claim(queue, { ...request, jobIds });
        },
      };
    },
  },
  'claims by id go past maxActive': {
    noticedBy: /claims by id count under maxActive/,
    bend: (right) => {
      const rules = new Map<string, GroupRules | null>();
      return {
        configure: async (queue, settings) => {
          if (settings.groups !== undefined) rules.set(queue, settings.groups);
          await right.configure(queue, settings);
        },
        claim: async (queue, request) => {
          if (request.jobIds === undefined) return right.claim(queue, request);
          await right.configure(queue, { groups: null });
          const reply = await right.claim(queue, request);
          await right.configure(queue, { groups: rules.get(queue) ?? null });
          return reply;
        },
      };
    },
  },
  'a limit of its own cannot be removed': {
    noticedBy: /maxActive of its own counts for a group/,
    bend: bendingSettings(({ group, ...settings }) => {
      if (group === undefined) return settings;
      const { maxActive, rate, ...rest } = group;
      const kept = { ...(typeof maxActive === 'number' && { maxActive }), ...(rate !== null && rate !== undefined && { rate }) };
      return { ...settings, group: { ...rest, ...kept } };
    }),
  },
  'a resumed group has lost its own limits': {
    noticedBy: /paused group gives out no job and keeps/,
    bend: bendingSettings(({ group, ...settings }) =>
      group?.paused === false
        ? { ...settings, group: { maxActive: null, rate: null, ...group } }
        : { ...settings, ...(group && { group }) },
    ),
  },
  'a paused group gives out jobs': {
    noticedBy: /paused group gives out no job/,
    bend: bendingSettings(({ group, ...settings }) => {
      if (group === undefined) return settings;
      const { paused: _, ...rest } = group;
      return { ...settings, group: rest };
    }),
  },
  'rates of groups mean nothing': {
    noticedBy: /as many jobs per window as its rate allows/,
    bend: bendingSettings(({ groups, ...settings }) => {
      if (groups === undefined) return settings;
      const { rate: _, ...rest } = groups ?? {};
      return { ...settings, groups: groups === null ? null : rest };
    }),
  },
  'a block of a group ends its window': {
    noticedBy: /block does not end the window/,
    bend: (right) => ({
      configure: async (queue, settings) => {
        if (settings.group?.blockedMs !== undefined) {
          await right.configure(queue, { group: { key: settings.group.key, blockedMs: 0 } });
        }
        await right.configure(queue, settings);
      },
    }),
  },
  'a block of 0 ms leaves the window of a group open': {
    noticedBy: /block of 0 ms ends the block and the window/,
    bend: bendingSettings((settings) =>
      settings.group?.blockedMs === 0 ? { ...settings, group: { ...settings.group, blockedMs: 1 } } : settings,
    ),
  },
  'claims do not say when a group may be served again': {
    noticedBy: /as many jobs per window as its rate allows|blocked group gives out no job/,
    bend: bendingClaims((right) => async (queue, request) => {
      const { nextInMs, ...reply } = await right.claim(queue, request);
      const { counts } = await right.status(queue);
      return counts.delayed > 0 || reply.limitedMs !== undefined
        ? { ...reply, ...(nextInMs !== undefined && { nextInMs }) }
        : reply;
    }),
  },
  'drained does not count the jobs of groups': {
    noticedBy: /at most maxActive jobs of each group/,
    bend: bendingClaims((right) => async (queue, request) => {
      const reply = await right.claim(queue, request);
      const { jobs } = await right.jobs(queue, { lists: ['waiting', 'prioritized'], start: 0, end: -1, asc: true });
      return { ...reply, drained: reply.drained || (jobs.length > 0 && jobs.every(({ group }) => group !== undefined)) };
    }),
  },
  'the list of a group shows all waiting jobs': {
    noticedBy: /waiting jobs of a group are listed in the order/,
    bend: (right) => ({
      jobs: ((queue: string, query: string[] | { group?: string; start: number; end: number; asc: boolean }) => {
        if (Array.isArray(query) || query.group === undefined) return right.jobs(queue, query as never);
        const { group: _, ...range } = query;
        return right.jobs(queue, { lists: ['waiting', 'prioritized'], ...range });
      }) as Store['jobs'],
    }),
  },
  'forget keeps the settings of groups': {
    noticedBy: /forget deletes the settings of groups/,
    bend: (right) => ({
      forget: async (queue, what) => {
        const { groups } = await right.status(queue, { groups: { limit: 100 } });
        const removed = await right.forget(queue, what);
        for (const { key, paused, maxActive = null } of groups?.groups ?? [])
          await right.configure(queue, { group: { key, paused, maxActive } });
        return removed;
      },
    }),
  },
  'forget deletes the limits of all groups under an open session': {
    noticedBy: /forget keeps the limits of all groups while a session is open/,
    bend: (right) => ({
      forget: async (queue, what) => {
        const removed = await right.forget(queue, what);
        if ('all' in what) await right.configure(queue, { groups: null });
        return removed;
      },
    }),
  },
};
