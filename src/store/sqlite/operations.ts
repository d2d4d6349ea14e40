// The verbs of the SQLite store. Writes go through the committer and share transactions, except for those that join a transaction of the
// user's (state/guests.ts). Reads run at once; large reads take turns with
// the event loop (state/read-pacer.ts).
// No code here may await inside a transaction, because the connection of the lock thread would wait for that transaction.
import type { Lines } from './named-lock.js';
import { replyById, replyToSelection } from '../change-reply.js';
import type { Change, Selection, SweepReply, Write } from '../contract/index.js';
import type { Operations } from '../door.js';
import type { Forgetting } from './control.js';
import type { Engine } from './state/engine.js';
import type { QueueState } from './state/queue-state.js';
import type { Transaction } from './state/transaction.js';

export const operations: Operations<Engine> = {
  add: (engine, queue, jobs, call, transaction) => {
    if (transaction !== undefined)
      return engine.guests.join(transaction, (parts, joined) =>
        jobs.length === 0 ? [] : parts.adding.add(joined, queue, jobs, call),
      );
    const bytes = sum(jobs, ({ data }) => data.length);
    return engine.committer.write((transaction) => engine.adding.add(transaction, queue, jobs, call), { bytes });
  },
  claim: (engine, queue, request) => {
    const { claiming, queues, clock } = engine;
    return engine.committer.write((transaction) => claiming.claim(transaction, transaction.queue(queue), request), {
      look: () => claiming.look(queues.peek(queue), request, clock.now()),
    });
  },
  settle: async (engine, queue, outcomes, call, claim, transaction) => {
    const { settling, claiming, guests } = engine;
    if (transaction !== undefined)
      return guests.join(transaction, (parts, joined) => parts.settling.settle(joined, queue, outcomes));
    const bytes = sum(outcomes, (outcome) => (outcome.kind === 'completed' ? outcome.value.length : 0));
    const reply = await engine.committer.write((transaction) => settling.settle(transaction, queue, outcomes, call, claim), {
      bytes,
    });
    if (claim === undefined || reply.claimed?.more !== true || reply.claimed.jobs.length > 0) return reply;
    // The first job is too large for the settle's transaction, so this transaction claims it. It is still the same call: `lastSeq`
    // below its number says that the number is unused.
    const remember = call?.caller !== claim.session || call.seq !== claim.seq;
    const rest = { remember, lastSeq: claim.seq - 1 };
    const claimed = await engine.committer.write((transaction) =>
      claiming.claim(transaction, transaction.queue(queue), claim, rest),
    );
    return { ...reply, claimed };
  },
  openSession: (engine, session) => {
    const presence = engine.presence();
    return engine.committer.write((transaction) => engine.sessions.open(transaction, session, presence));
  },
  renew: (engine, renewals) => writeEach(engine, renewals, (transaction, renewal) => engine.sessions.renew(transaction, renewal)),
  closeSessions: async (engine, refs, how) => {
    const { sessions } = engine;
    // Submit all steps at once. The committer cuts them into transactions.
    const steps = refs.flatMap((ref) => {
      const count = read(engine, ref.queue, (state) => sessions.stepsToClose(state, ref.id));
      return Array.from({ length: count }, () =>
        engine.committer.write((transaction) => sessions.handBackSome(transaction, ref, how)),
      );
    });
    const end = engine.committer.write((transaction) => {
      for (const ref of refs) sessions.close(transaction, ref, how);
    });
    // If one fails, the others are still pending: the file may be closed only after them.
    await Promise.allSettled(steps);
    await Promise.all([...steps, end]);
  },
  sweep: (engine, queue, limit) => {
    const { sweeping, queues, clock } = engine;
    return engine.committer.write<SweepReply>((transaction) => sweeping.sweep(transaction, queue, limit), {
      look: () => (sweeping.anyDead(queues.peek(queue), clock.now()) ? undefined : { stalled: [], failed: [], more: false }),
    });
  },
  probe: (engine, queue) => {
    const { probing, queues, clock } = engine;
    return engine.committer.write((transaction) => probing.probe(transaction, queue), {
      look: () => probing.look(queues.peek(queue), clock.now()),
    });
  },
  steps: (engine, queue, jobId) => read(engine, queue, (state) => engine.inspecting.steps(state, jobId)),
  checkSessions: ({ probing, queues, clock }, refs) => {
    const now = clock.now();
    return refs.map(({ queue, id }) => probing.check(queues.peek(queue), id, now));
  },
  extend: (engine, queue, extensions) =>
    writeEach(engine, extensions, (transaction, extension) => engine.locks.extend(transaction, queue, extension)),
  acquire: (engine, queue, requests) =>
    engine.committer.write((transaction) => {
      const lines: Lines = new Map();
      return requests.map((request) => engine.namedLocks.acquire(transaction, queue, request, lines));
    }),
  letGo: (engine, queue, locks) =>
    engine.committer.write((transaction) => {
      const lines: Lines = new Map();
      return locks.map((lock) => engine.namedLocks.letGo(transaction, queue, lock, lines));
    }),
  configure: (engine, queue, settings) =>
    engine.committer.write((transaction) => engine.controlling.configure(transaction, queue, settings)),
  write: (engine, queue, writes, within) => {
    if (within !== undefined)
      return engine.guests.join(within, (parts, joined) => writes.map((one) => parts.writing.write(joined, queue, one)));
    const bytes = sum(writes, bytesOf);
    return writeEach(engine, writes, (transaction, one) => engine.writing.write(transaction, queue, one), bytes);
  },
  change: async (engine, queue, target, change) => {
    const { changing } = engine;
    if (Array.isArray(target))
      return replyById(target, await engine.committer.write((transaction) => changing.byId(transaction, queue, target, change)));
    if (change.kind === 'remove') return replyToSelection(await removeSelected(engine, queue, target, change), target);
    const changed = await engine.committer.write((transaction) => changing.bySelection(transaction, queue, target, change));
    return replyToSelection(changed, target);
  },
  schedule: (engine, queue, changes) => {
    const bytes = sum(changes, (change) => ('next' in change ? (change.next?.job.data.length ?? 0) : 0));
    return writeEach(engine, changes, (transaction, one) => engine.scheduling.schedule(transaction, queue, one), bytes);
  },
  // Messages take effect in the transaction that sends them.
  relay: () => ({ delivered: 0, more: false }),
  children: (engine, queue, jobId, query) => readInTurn(engine, queue, (state) => engine.links.page(state, jobId, query)),
  forget: (engine, queue, what) =>
    'all' in what
      ? forgetAll(engine, queue)
      : engine.committer.write((transaction) => engine.controlling.forget(transaction, queue, what)),
  queues: (engine, limit, after) => read(engine, '', () => engine.inspecting.queues(limit, after)),
  jobs: (engine, queue, query) =>
    readInTurn(engine, queue, (state) => {
      if (Array.isArray(query)) return engine.inspecting.jobs(state, query);
      return 'group' in query ? engine.inspecting.listGroup(state, query) : engine.inspecting.list(state, query);
    }),
  status: (engine, queue, query) => read(engine, queue, (state, now) => engine.inspecting.status(state, query, now)),
  logs: (engine, queue, jobId, range) => readInTurn(engine, queue, (state) => engine.inspecting.logs(state, jobId, range)),
  events: (engine, queue, after, limit) => readInTurn(engine, queue, (state) => engine.events.read(state, after, limit)),
  locks: (engine, queue, query) =>
    read(engine, queue, (state, now) => {
      const { inspecting, namedLocks } = engine;
      if ('session' in query) return inspecting.owned(state, query.session);
      if ('names' in query) return query.names.map((name) => namedLocks.look(state, name, now));
      return query.jobIds.map((id) => inspecting.lockOf(state, id, now));
    }),
  sessions: (engine, queue) => read(engine, queue, (state, now) => engine.inspecting.sessions(state, now)),
  watch: ({ wake }, queue, listener) => wake.watch(queue, listener),
  onWarning: ({ warnings }, listener) => warnings.listen(listener),
};

async function removeSelected(
  engine: Engine,
  queue: string,
  selection: Selection,
  change: Extract<Change, { kind: 'remove' }>,
): Promise<string[]> {
  const gone: string[] = [];
  for (;;) {
    const rest = { ...selection, limit: selection.limit - gone.length };
    const { ids, cut } = await engine.committer.write((transaction) =>
      engine.changing.removeSelected(transaction, queue, rest, change, gone.length === 0),
    );
    gone.push(...ids);
    if (!cut) return gone;
  }
}

/** Works in steps, so that the transactions of other processes come between them. */
async function forgetAll(engine: Engine, queue: string): Promise<number> {
  let rest: Forgetting | undefined = { after: '' };
  while (rest !== undefined) {
    const step: Forgetting = rest;
    rest = await engine.committer.write((transaction) => engine.controlling.forgetSome(transaction, queue, step));
  }
  return 0;
}

function writeEach<I, O>(
  { committer }: Engine,
  items: I[],
  run: (transaction: Transaction, item: I) => O,
  bytes = 0,
): Promise<O[]> {
  return committer.write((transaction) => items.map((item) => run(transaction, item)), { bytes });
}

/** For reads that may be large. */
function readInTurn<T>(engine: Engine, queue: string, look: (state: QueueState, now: number) => T): T | Promise<T> {
  return engine.readPacer.run(() => read(engine, queue, look));
}

function read<T>({ queues, clock, committer }: Engine, queue: string, look: (state: QueueState, now: number) => T): T {
  try {
    return look(queues.peek(queue), clock.now());
  } catch (error) {
    throw committer.explain(error);
  }
}

function bytesOf(write: Write): number {
  if (write.kind === 'data') return write.data.length;
  if (write.kind === 'progress') return write.progress.length;
  if (write.kind === 'event') return write.args.length;
  if (write.kind === 'step') return write.value.length;
  return write.kind === 'log' ? write.row.length : 0;
}

function sum<I>(items: I[], sizeOf: (item: I) => number): number {
  return items.reduce((total, item) => total + sizeOf(item), 0);
}
