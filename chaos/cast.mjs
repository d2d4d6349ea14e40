// Who is on the stage: parts with a name, a role and the program that plays it. A part that is `spared` is never killed nor replaced by a
// deploy; everything else may happen to it. One that renews `onLoop` has no lock thread.
import { fileURLToPath } from 'node:url';

const ACTORS = new URL('actors/', import.meta.url);

/** `count` parts of a role. */
export function some(role, count, details = {}) {
  return Array.from({ length: count }, (_, index) => part(role, `${role}-${index + 1}`, details));
}

export function part(role, name, { program = new URL(`${role}.mjs`, ACTORS), ...details } = {}) {
  return { role, name, program: fileURLToPath(program), ...details };
}

/** Those of `npm run chaos`. */
export const CHAOS = {
  queues: ['work'],
  /** How often jobs are added, how long a holder rests between two locks and a leader between two writes, what is kept of jobs, and whether some have a `lockKey`, a
   * deduplication id or a group, whether workers have a rate limit, a schedule adds others, flows are added where the store keeps families, and jobs of several steps are added and cancelled. */
  acting: {
    paceMs: 150,
    restMs: [0, 50],
    beatMs: [20, 100],
    kept: { removeOnComplete: { count: 500 } },
    hasKeys: true,
    hasUnique: true,
    hasSchedule: true,
    hasGroups: true,
    hasRate: true,
    hasFlows: true,
    hasSteps: true,
  },
  parts: [
    ...some('producer', 2),
    ...some('worker', 3),
    part('worker', 'worker-4', { onLoop: true }),
    ...some('leader', 3),
    ...some('locker', 3),
  ],
};
