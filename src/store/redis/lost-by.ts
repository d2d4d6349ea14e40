// Which owner lost a claimed job before. Few jobs have one, so claims do not send it: it is read afterwards, for jobs that have stalled.
import { type ClaimedJob, hasStalled } from '../../job/record.js';
import type { Runner } from './runner.js';

/** Stands in replies and events for an owner of which nothing is known. */
const UNKNOWN = 'null';

export async function fillLosses(run: Runner, queue: string, jobs: ClaimedJob[]): Promise<void> {
  const stalled = jobs.filter(hasStalled);
  const losses = (await run(
    'losses',
    queue,
    stalled.map(({ id }) => id),
  )) as (string | null)[];
  stalled.forEach((job, index) => {
    const lostBy = losses[index];
    if (typeof lostBy === 'string') job.lostBy = lostBy;
  });
}

export function readLosses(texts: string[]): (string | null)[] {
  return texts.map((text) => (text === UNKNOWN ? null : text));
}
