// Reads which owner lost a claimed job before. Few jobs have such an owner, so a claim does not return it: a second call reads it, only
// for jobs that have stalled.
import { type ClaimedJob, hasStalled } from '../../job/record.js';
import type { Runner } from './runner.js';

/** Stands in replies and events for an unknown owner. */
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
