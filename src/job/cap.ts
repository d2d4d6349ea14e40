// How the sessions of a queue share its cap on running jobs. The claim of every store follows this rule, in its own language.

export interface Claimant {
  /** How many jobs the session can run at once. */
  slots: number;
  /** How many jobs the session runs now. */
  active: number;
}

/**
 * Returns how many more jobs a living session may claim. Each session that runs jobs has an equal share (rounded down, at least 1,
 * at most its slots). Above its share, a claim must leave what the other sessions have not used of theirs. Otherwise a session that
 * settles and claims in one step would use the whole cap for ever. With shares rounded up, two of three sessions could use a cap of four
 * and leave nothing for the third.
 */
export function roomUnderCap(maxActive: number, active: number, claimant: Claimant, others: Claimant[]): number {
  const free = Math.max(0, maxActive - active);
  const sharing = [claimant, ...others].filter(({ slots }) => slots > 0).length;
  const share = Math.max(1, Math.floor(maxActive / Math.max(1, sharing)));
  const unused = (one: Claimant) => Math.max(0, Math.min(share, one.slots) - one.active);
  const reserved = others.reduce((sum, other) => sum + unused(other), 0);
  return Math.min(free, Math.max(unused(claimant), free - reserved));
}
