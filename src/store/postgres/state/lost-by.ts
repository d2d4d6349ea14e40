// Reads which owner lost a claimed job before. Few jobs have one, so claims leave it out: it is read afterwards, for stalled jobs only.
import { type ClaimedJob, hasStalled } from '../../../job/record.js';
import type { Server } from '../driver/server.js';

export async function fillLosses(server: Server, queue: string, jobs: ClaimedJob[]): Promise<void> {
  const stalled = jobs.filter(hasStalled);
  const rows = (await server.rows('losses', { name: queue, ids: stalled.map(({ id }) => id) })) as [id: string, lostBy: string][];
  const losses = new Map(rows);
  for (const job of stalled) {
    const lostBy = losses.get(job.id);
    if (lostBy !== undefined) job.lostBy = lostBy;
  }
}
