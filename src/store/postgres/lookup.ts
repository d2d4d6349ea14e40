// Finding jobs by their ids, one by one through the primary key. Left to the planner, a list of ids with an order, or a join with one,
// becomes a walk through the whole queue as soon as its statistics are older than its jobs.

/** In the order of the ids, which is the order of everybody: nobody waits in a circle. */
export const lockJobs = (ids: string, queue = '_queue') =>
  `PERFORM FROM (SELECT DISTINCT id FROM unnest(${ids}) id ORDER BY id) o, LATERAL (SELECT FROM jobs WHERE queue = ${queue} AND id = o.id FOR UPDATE) j`;

/** What stands behind FROM or JOIN for the job of an id. */
export const jobOf = (id: string, columns = '*', condition = 'true') =>
  `LATERAL (SELECT ${columns} FROM jobs j WHERE j.queue = _queue AND j.id = ${id} AND ${condition} OFFSET 0)`;
