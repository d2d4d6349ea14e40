// Finds jobs by their ids, one by one through the primary key. The planner must have no choice. With statistics older than the jobs, it
// would turn a list of ids with an order, or a join with one, into a walk through the whole queue.

/** Locks jobs in the order of their ids. All verbs use this order, so that they never deadlock. */
export const lockJobs = (ids: string, queue = '_queue') =>
  `PERFORM FROM (SELECT DISTINCT id FROM unnest(${ids}) id ORDER BY id) o, LATERAL (SELECT FROM jobs WHERE queue = ${queue} AND id = o.id FOR UPDATE) j`;

/** The text after FROM or JOIN that finds the job of an id. */
export const jobOf = (id: string, columns = '*', condition = 'true') =>
  `LATERAL (SELECT ${columns} FROM jobs j WHERE j.queue = _queue AND j.id = ${id} AND ${condition} OFFSET 0)`;
