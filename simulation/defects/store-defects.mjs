// Stores with one defect each, made by bending a few verbs of the right one.

/** The token that owns each job now, for stores that do not ask for it. */
async function withoutTokens(right, queue, items) {
  const locks = await right.locks(queue, { jobIds: items.map(({ jobId }) => jobId) });
  return items.map((item, index) => ({ ...item, token: locks[index]?.token ?? item.token }));
}

/** Frees the deduplication ids of jobs. */
async function freeIds(right, queue, jobIds) {
  const { jobs } = await right.jobs(queue, jobIds);
  for (const job of jobs) {
    if (job?.deduplicationId === undefined) continue;
    await right.forget(queue, { deduplication: [job.deduplicationId], ownedBy: job.id });
  }
}

export const STORE_DEFECTS = {
  'a finish by job id alone': {
    violates: 'no stale write',
    store: (right) => ({
      settle: async (queue, outcomes, call, claim) =>
        right.settle(queue, await withoutTokens(right, queue, outcomes), call, claim),
    }),
  },
  'progress and data are written whoever asks': {
    violates: 'no stale write',
    store: (right) => ({
      write: (queue, writes) =>
        right.write(
          queue,
          writes.map(({ token: _, ...write }) => write),
        ),
    }),
  },
  'a reaped session is renewed': {
    violates: 'the reaped stay dead',
    store: (right) => {
      const opened = new Map();
      return {
        openSession: async (session) => {
          opened.set(session.id, session);
          await right.openSession(session);
        },
        renew: async (renewals) => {
          const replies = await right.renew(renewals);
          for (const [index, { alive }] of replies.entries()) {
            const session = opened.get(renewals[index].id);
            // Where jobs still hang on it, it cannot be opened again.
            if (alive || session === undefined) continue;
            await right.openSession(session).then(
              () => (replies[index] = { alive: true, notices: [] }),
              () => undefined,
            );
          }
          return replies;
        },
      };
    },
  },
  'a session ends after half of its time': {
    violates: 'only the dead are swept',
    store: (right) => ({
      openSession: (session) => right.openSession({ ...session, durationMs: session.durationMs / 2 }),
    }),
  },
  'expiry is judged by the wall clock of whoever asks': {
    violates: 'only the dead are swept',
    clock: (_, server) => ({
      monotonic: () => server.caller?.clock?.wall() ?? 0,
      wall: () => 0,
    }),
  },
  'an active job is granted again': {
    violates: 'one lock per job',
    store: (right) => ({
      claim: async (queue, request) => {
        const reply = await right.claim(queue, request);
        if (reply.jobs.length > 0 || !reply.sessionAlive) return reply;
        const [active] = (await right.jobs(queue, { lists: ['active'], start: 0, end: 0, asc: true })).jobs;
        if (active === undefined) return reply;
        await right.change(queue, [active.id], { kind: 'revoke', reason: 'granted again' });
        return right.claim(queue, { ...request, seq: request.seq + 0.5, jobIds: [active.id] });
      },
    }),
  },
  'the fence stays where it is': {
    violates: 'tokens and fences grow',
    modules: {
      'job/lock.js': ({ nextFence }) => ({ nextFence: (last, now) => (last > 0 ? last : nextFence(last, now)) }),
    },
  },
  'a sweep does not charge': {
    violates: 'stalls are counted',
    store: (right) => ({
      sweep: async (queue, limit) => {
        const dead = (await right.sessions(queue)).filter(({ expiresInMs }) => expiresInMs <= 0);
        const owned = await Promise.all(dead.map(({ id }) => right.locks(queue, { session: id })));
        await right.closeSessions(dead, 'closed');
        const reply = await right.sweep(queue, limit);
        return { ...reply, stalled: [...reply.stalled, ...owned.flat().map(({ jobId }) => jobId)] };
      },
    }),
  },
  'a name is given to whoever asks': {
    violates: 'one holder per name',
    store: (right) => ({
      acquire: async (queue, wishes) => {
        const holders = await right.locks(queue, { names: wishes.map(({ name }) => name) });
        const taken = holders.filter((holder) => holder !== undefined);
        await right.letGo(queue, taken);
        return right.acquire(queue, wishes);
      },
    }),
  },
  'a finish that is repeated is a new one': {
    violates: 'a repeat changes nothing',
    store: (right) => ({ settle: (queue, outcomes, _, claim) => right.settle(queue, outcomes, undefined, claim) }),
  },
  'an add that is repeated adds again': {
    violates: 'a repeat changes nothing',
    store: (right) => {
      let calls = 0;
      return { add: (queue, jobs, { caller }) => right.add(queue, jobs, { caller, seq: ++calls }) };
    },
  },
  'a job that stalls loses its deduplication id': {
    violates: 'one owner per id',
    store: (right) => ({
      sweep: async (queue, limit) => {
        const reply = await right.sweep(queue, limit);
        await freeIds(right, queue, reply.stalled);
        return reply;
      },
    }),
  },
  'the draft of a job that fails is dropped': {
    violates: 'the last draft runs',
    store: (right) => ({
      settle: async (queue, outcomes, call, claim) => {
        const failed = outcomes.filter(({ kind }) => kind === 'failed').map(({ jobId }) => jobId);
        await freeIds(right, queue, failed);
        return right.settle(queue, outcomes, call, claim);
      },
    }),
  },
  'a job that stalls too often is thrown away': {
    violates: 'nothing acknowledged is lost',
    store: (right) => ({
      sweep: async (queue, limit) => {
        const reply = await right.sweep(queue, limit);
        await right.change(queue, reply.failed, { kind: 'remove' });
        return reply;
      },
    }),
  },
};
