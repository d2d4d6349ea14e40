// Everything that an outsider can see of a queue.
import type { JobRecord } from '../../src/job/record.js';
import type { Store } from '../../src/store/contract/index.js';
import { type Cast, sessionsOf } from './cast.js';
import type { Side } from './side.js';
import { LISTS, LOCKS } from './steps.js';

export async function visible(store: Store, side: Side, cast: Cast): Promise<unknown> {
  const { queue, sessions, marks } = cast;
  const lists: Record<string, unknown> = {};
  const all: JobRecord[] = [];
  for (const name of LISTS) {
    const records = await cast.list(store, { lists: [name], start: 0, end: -1, asc: true });
    const backwards = await cast.list(store, { lists: [name], start: 0, end: -1, asc: false });
    lists[name] = { records, backwards: backwards.map(({ id }) => id) };
    all.push(...records);
  }
  const ids = all.map(({ id }) => id);
  const logs = await Promise.all(ids.map((id) => store.logs(queue, id, { start: 0, end: -1, asc: true })));
  const steps = await Promise.all(ids.map((id) => store.jobs(queue, { stepsOf: id })));
  const locks = await store.locks(queue, { jobIds: ids });
  const owned = await Promise.all(sessions.map((id) => store.locks(queue, { session: id })));
  return {
    status: await store.status(queue, cast.ask),
    failed: await store.status(queue, { metrics: { kind: 'failed', start: 0, end: -1 } }),
    groups: await store.status(queue, { groups: { limit: 10 } }),
    ofGroups: await cast.groupJobs(store),
    lists,
    again: (await store.jobs(queue, ids)).jobs,
    logs,
    steps,
    locks,
    owned,
    sessions: await sessionsOf(store, queue),
    named: await store.locks(queue, { names: [...LOCKS] }),
    events: await side.events(store, queue, { after: 0, page: 100_000, marks }),
  };
}
