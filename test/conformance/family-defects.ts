// Stores with one defect of families or dead letters each.
import { LINK_STATES, type ParentLink } from '../../src/job/family.js';
import type { Outcome } from '../../src/job/outcome.js';
import type { NewJob } from '../../src/job/record.js';
import type { Change, ChangeReply, Link, Selection, Store } from '../../src/store/contract/index.js';
import type { Defect } from './defects.js';

type ChangeVerb = (queue: string, target: string[] | Selection, change: Change) => Promise<ChangeReply>;

/** Bends each change. */
function bendingChanges(bend: (right: Store, change: ChangeVerb) => ChangeVerb): Defect['bend'] {
  return (right) => {
    const change: ChangeVerb = (queue, target, what) => right.change(queue, target as string[], what);
    return { change: bend(right, change) as Store['change'] };
  };
}

/** Bends the jobs that are added. */
function bendingJobs(bend: (job: NewJob, queue: string) => NewJob): Defect['bend'] {
  return (right) => ({
    add: (queue, jobs, call) =>
      right.add(
        queue,
        jobs.map((job) => bend(job, queue)),
        call,
      ),
  });
}

function withInstructions(job: NewJob, bend: (parent: ParentLink) => ParentLink): NewJob {
  return job.parents === undefined ? job : { ...job, parents: job.parents.map(bend) };
}

/** Bends the outcomes of runs, and lets `after` change the store once they are carried out. */
function bendingOutcomes(
  bend: (right: Store, queue: string, outcome: Outcome) => Promise<Outcome>,
  after: (right: Store, queue: string, outcomes: Outcome[]) => Promise<void> = async () => {},
): Defect['bend'] {
  return (right) => ({
    settle: async (queue, outcomes, call, claim) => {
      const bent = await Promise.all(outcomes.map((outcome) => bend(right, queue, outcome)));
      const reply = await right.settle(queue, bent, call, claim);
      await after(right, queue, outcomes);
      return reply;
    },
  });
}

async function linksOf(store: Store, queue: string, id: string): Promise<Link[]> {
  return (await store.children(queue, id, { states: [...LINK_STATES], limit: 1_000 })).links;
}

async function parentsOf(store: Store, queue: string, id: string): Promise<ParentLink[]> {
  return (await store.jobs(queue, [id])).jobs[0]?.parents ?? [];
}

/** Adds a child that nothing ends, so that its parent goes on waiting. */
async function keepWaiting(store: Store, parents: ParentLink[]): Promise<void> {
  for (const { queue, id } of parents) {
    const plain = { name: 'n', data: '{}', opts: '{}', priority: 0, delayMs: 1e9, lifo: false, timestamp: 0 };
    await store.add(queue, [{ ...plain, id: `ghost of ${id}`, queue: `${queue}-ghosts`, parents: [{ queue, id }] }], {
      caller: `ghosts-${Math.random()}`,
      seq: 1,
    });
  }
}

const RANDOM_WORK = 'keep the families of three queues whole';

export const FAMILY_DEFECTS: Record<string, Defect> = {
  'a removed child keeps its parent waiting': {
    noticedBy: new RegExp(`a removed child releases its parent|${RANDOM_WORK}`),
    bend: bendingChanges((right, change) => async (queue, target, what) => {
      if (what.kind === 'remove' && Array.isArray(target))
        for (const id of target) await keepWaiting(right, await parentsOf(right, queue, id));
      return change(queue, target, what);
    }),
  },
  'a job that exists is not adopted': {
    noticedBy: new RegExp(`is adopted|${RANDOM_WORK}`),
    bend: (right) => ({
      add: async (queue, jobs, call) => {
        const known = await Promise.all(
          jobs.map(async (job) => (await right.jobs(job.queue ?? queue, [job.id ?? ''])).jobs[0] !== undefined),
        );
        const bent = jobs.map(({ parents, ...job }, index) =>
          known[index] || parents === undefined ? job : { ...job, parents },
        );
        return right.add(queue, bent, call);
      },
    }),
  },
  'a job gets any further parent': {
    noticedBy: new RegExp(`a job with a living parent gets no other one|${RANDOM_WORK}`),
    bend: bendingJobs((job) => (job.parents === undefined ? job : { ...job, shares: true })),
  },
  'a doomed parent that has failed stays doomed': {
    noticedBy: new RegExp(`is not doomed when it is retried|${RANDOM_WORK}`),
    bend: (right) => {
      const doomed = new Map<string, { queue: string; id: string }>();
      return {
        jobs: (async (queue: string, query: string[]) => {
          const reply = await right.jobs(queue, query);
          for (const job of reply.jobs) {
            if (job === undefined) continue;
            if (job.doomedBy !== undefined) doomed.set(`${queue} ${job.id}`, job.doomedBy);
            const by = doomed.get(`${queue} ${job.id}`);
            if (by !== undefined) job.doomedBy = by;
          }
          return reply;
        }) as Store['jobs'],
        claim: async (queue, request) => {
          const reply = await right.claim(queue, request);
          for (const { id, doomedBy } of reply.jobs) if (doomedBy !== undefined) doomed.set(`${queue} ${id}`, doomedBy);
          return reply;
        },
      };
    },
  },
  'a failure does not doom the parent': {
    noticedBy: new RegExp(`doomed|dooms|${RANDOM_WORK}`),
    bend: bendingJobs((job) =>
      withInstructions(job, ({ onFailure, ...parent }) => {
        if (onFailure === undefined) return parent;
        const { doom: _, ...instruction } = onFailure;
        return { ...parent, onFailure: instruction };
      }),
    ),
  },
  'an ignored failure releases the parent at once': {
    noticedBy: new RegExp(`a child with a sibling that is ignored fails for good|${RANDOM_WORK}`),
    bend: bendingJobs((job) =>
      withInstructions(job, (parent) =>
        parent.onFailure?.link === 'ignored' ? { ...parent, onFailure: { ...parent.onFailure, release: 'now' } } : parent,
      ),
    ),
  },
  'the links of jobs that retention removes are lost': {
    noticedBy: new RegExp(`the last child that completes releases its parent|${RANDOM_WORK}`),
    bend: (right) => {
      const gone = new Set<string>();
      return {
        settle: async (queue, outcomes, call, claim) => {
          for (const outcome of outcomes)
            if ('keep' in outcome && outcome.keep.count === 0) gone.add(`${queue} ${outcome.jobId}`);
          return right.settle(queue, outcomes, call, claim);
        },
        children: async (queue, id, query) => {
          const reply = await right.children(queue, id, query);
          return { ...reply, links: reply.links.filter(({ child }) => !gone.has(`${child.queue} ${child.id}`)) };
        },
      };
    },
  },
  'unlink does not release the parent': {
    noticedBy: new RegExp(`a parent and a child are parted|${RANDOM_WORK}`),
    bend: bendingChanges((right, change) => async (queue, target, what) => {
      if (what.kind !== 'unlink' || !Array.isArray(target)) return change(queue, target, what);
      const links = await linksOf(right, queue, target[0] ?? '');
      if (links.filter(({ state }) => state === 'pending').length === 1)
        await keepWaiting(right, [{ queue, id: target[0] ?? '' }]);
      return change(queue, target, what);
    }),
  },
  'unlink takes ended links too': {
    noticedBy: new RegExp(`a parent and a child that has ended are not parted|${RANDOM_WORK}`),
    bend: bendingChanges((_, change) => async (queue, target, what) => {
      const reply = await change(queue, target, what);
      if (what.kind !== 'unlink') return reply;
      const done = reply.others.filter(({ status }) => status === 'state').map(({ jobId }) => jobId);
      return { ...reply, changed: [...reply.changed, ...done], others: [] };
    }),
  },
  'a retried child leaves its link as it was': {
    noticedBy: new RegExp(`makes its link pending again|${RANDOM_WORK}`),
    bend: (right) => {
      const ended = new Map<string, Link>();
      return {
        children: async (queue, id, query) => {
          const reply = await right.children(queue, id, query);
          const links = reply.links.map((link) => {
            const key = `${queue} ${id} ${link.child.queue} ${link.child.id}`;
            if (link.state === 'processed') ended.set(key, link);
            return ended.get(key) ?? link;
          });
          const moved = links.filter((link, index) => link !== reply.links[index]).length;
          const { pending, processed } = reply.counts;
          return { ...reply, links, counts: { ...reply.counts, pending: pending - moved, processed: processed + moved } };
        },
        settle: async (queue, outcomes, call, claim) => {
          const parents = await Promise.all(outcomes.map(({ jobId }) => parentsOf(right, queue, jobId)));
          const reply = await right.settle(queue, outcomes, call, claim);
          for (const [index, outcome] of outcomes.entries()) {
            if (outcome.kind !== 'completed') continue;
            for (const parent of parents[index] ?? []) {
              const child = { queue, id: outcome.jobId };
              ended.set(`${parent.queue} ${parent.id} ${queue} ${child.id}`, { child, state: 'processed', text: outcome.value });
            }
          }
          return reply;
        },
      };
    },
  },
  'a parent completes beside pending children': {
    noticedBy: new RegExp(`a parent that has pending children cannot complete|${RANDOM_WORK}`),
    bend: bendingOutcomes(async (right, queue, outcome) => {
      if (outcome.kind !== 'completed') return outcome;
      for (const { child, state } of await linksOf(right, queue, outcome.jobId))
        if (state === 'pending') await right.change(queue, [outcome.jobId], { kind: 'unlink', child });
      return outcome;
    }),
  },
  'a wait for one child is a wait for all': {
    noticedBy: new RegExp(`a run whose children have all ended keeps its job|${RANDOM_WORK}`),
    bend: bendingOutcomes(async (_, __, outcome) => {
      if (outcome.kind !== 'children') return outcome;
      const { child: _child, ...all } = outcome;
      return all;
    }),
  },
  'a removal with children leaves the children': {
    noticedBy: new RegExp(`a parent is removed with its children|${RANDOM_WORK}`),
    bend: bendingChanges(
      (_, change) => (queue, target, what) => change(queue, target, what.kind === 'remove' ? { ...what, children: false } : what),
    ),
  },
  'the last pending child goes without its parent': {
    noticedBy: new RegExp(`a parent in the same queue is removed with its last pending child|${RANDOM_WORK}`),
    bend: bendingChanges(
      (_, change) => (queue, target, what) =>
        change(queue, target, what.kind === 'remove' ? { ...what, parentToo: false } : what),
    ),
  },
  'a letter has another id': {
    noticedBy: new RegExp(`a job that fails for good sends one letter|${RANDOM_WORK}`),
    bend: (right) => ({
      jobs: (async (queue: string, query: string[]) => {
        const reply = await right.jobs(queue, query);
        const jobs = reply.jobs.map((job) => (job?.origin === undefined ? job : { ...job, id: `letter-${job.id}` }));
        return { ...reply, jobs };
      }) as Store['jobs'],
    }),
  },
  'a letter comes without its origin': {
    noticedBy: new RegExp(`a job that fails for good sends one letter|${RANDOM_WORK}`),
    bend: (right) => ({
      jobs: (async (queue: string, query: string[]) => {
        const reply = await right.jobs(queue, query);
        for (const job of reply.jobs) if (job !== undefined) delete job.origin;
        return reply;
      }) as Store['jobs'],
    }),
  },
  'jobs that a sweep fails send no letter': {
    noticedBy: new RegExp(`a job that a sweep fails sends its letter|${RANDOM_WORK}`),
    bend: (right) => ({
      sweep: async (queue, limit) => {
        const reply = await right.sweep(queue, limit);
        const { jobs } = await right.jobs(queue, reply.failed);
        for (const job of jobs) {
          if (job?.deadLetter === undefined) continue;
          const { jobs: letters } = await right.jobs(job.deadLetter, { lists: ['waiting'], start: 0, end: -1, asc: true });
          const own = letters.filter(({ origin }) => origin?.id === job.id && origin.failedOn === job.finishedOn);
          await right.change(
            job.deadLetter,
            own.map(({ id }) => id),
            { kind: 'remove' },
          );
        }
        return reply;
      },
    }),
  },
  'a letter stays when it is sent back': {
    noticedBy: new RegExp(`a letter that is sent back is the job again|${RANDOM_WORK}`),
    bend: bendingChanges((right, change) => async (queue, target, what) => {
      const before = what.kind === 'send' && Array.isArray(target) ? (await right.jobs(queue, target)).jobs : [];
      const reply = await change(queue, target, what);
      for (const job of before) {
        if (job?.origin === undefined || !reply.changed.includes(job.id)) continue;
        const { id, name, data, opts, timestamp, origin } = job;
        const letter = { id, name, data, opts, timestamp, priority: 0, delayMs: 0, lifo: false, origin };
        await right.add(queue, [letter], { caller: `again-${Math.random()}`, seq: 1 });
      }
      return reply;
    }),
  },
};
