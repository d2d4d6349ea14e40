// Reads which owner lost a claimed job before. Few jobs have one, so claims leave it out: it is read afterwards, for stalled jobs only.
import { type ClaimedJob, hasStalled } from '../../job/record.js';
import { jobOf } from './lookup.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';

export const LOST_BY_FUNCTIONS = verb(
  'losses(_name text, _ids text[])',
  'TABLE (wanted text, loss text)',
  `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN QUERY SELECT o.id, j.lost_by FROM unnest(_ids) o(id), ${jobOf('o.id', 'lost_by')} j WHERE j.lost_by IS NOT NULL;
END`,
);

export async function fillLosses(server: Server, queue: string, jobs: ClaimedJob[]): Promise<void> {
  const stalled = jobs.filter(hasStalled);
  const rows = (await server.rows('losses', [queue, stalled.map(({ id }) => id)])) as [id: string, lostBy: string][];
  const losses = new Map(rows);
  for (const job of stalled) {
    const lostBy = losses.get(job.id);
    if (lostBy !== undefined) job.lostBy = lostBy;
  }
}
