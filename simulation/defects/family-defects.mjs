// Defects of families and dead letters, in the memory store.
const EARLY = 'no parent before its children';
const ONCE = 'every end counts once';

export const FAMILY_DEFECTS = {
  'the message of a child that fails is lost': {
    violates: ['no parent waits in vain', 'every job ends'],
    modules: {
      'store/memory/family.js': ({ childEnded }) => ({
        childEnded: (queue, job, now) => {
          if (job.state === 'completed') childEnded(queue, job, now);
        },
      }),
    },
  },
  'the end of a child counts twice': {
    violates: [ONCE, EARLY],
    modules: {
      'store/memory/state/links.js': ({ Links }) => ({
        Links: class extends Links {
          set(child, state, text) {
            const wasPending = this.get(child)?.state === 'pending';
            super.set(child, state, text);
            if (wasPending && state === 'processed' && this.counts.pending > 0) this.counts.pending -= 1;
          }
        },
      }),
    },
  },
  'the first child that completes releases its parent': {
    violates: EARLY,
    modules: { 'job/family.js': ({ ON_COMPLETION }) => ({ ON_COMPLETION: { ...ON_COMPLETION, release: 'now' } }) },
  },
  'a finish of a stale owner is told to the parent': {
    violates: [ONCE, EARLY],
    modules: {
      'store/memory/settle.js': ({ settle }, realm) => ({
        settle: (queue, outcomes, call, request, now) => {
          const { childEnded } = realm.load('store/memory/family.js');
          for (const { jobId, token, kind, value } of outcomes) {
            const job = queue.jobs.get(jobId);
            const isStale = job !== undefined && job.finishedOn === undefined && job.lock?.token !== token;
            if (isStale && kind === 'completed')
              childEnded(queue, Object.assign(Object.create(job), { state: kind, returnvalue: value }), now);
          }
          return settle(queue, outcomes, call, request, now);
        },
      }),
    },
  },
  'a letter is sent twice': {
    violates: 'one letter per failure',
    modules: {
      'store/memory/dead-letter.js': ({ sendLetter }) => ({
        sendLetter: (queue, job, fence, now) => {
          sendLetter(queue, job, fence, now);
          sendLetter(queue, job, fence + 0.5, now);
        },
      }),
    },
  },
  'a job that a sweep fails sends no letter': {
    violates: 'one letter per failure',
    modules: {
      'store/memory/dead-letter.js': ({ sendLetter }) => ({
        sendLetter: (queue, job, fence, now) => {
          if (job.stalledCounter === 0) sendLetter(queue, job, fence, now);
        },
      }),
    },
  },
};
