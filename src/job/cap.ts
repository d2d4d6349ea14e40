// How the sessions of a queue share its cap. Every store keeps to this, in whatever language its claims are written.

export interface Claimant {
  /** How many jobs it is willing to run at once. */
  slots: number;
  /** How many it runs. */
  active: number;
}

/**
 * How many more jobs a living session may claim. Everyone who runs jobs is sure of an equal share (rounded down, at least 1, at most its
 * slots). Above it, a claim leaves what the others have not used of theirs: else whoever finishes and claims in one step would
 * keep every place for ever. Rounded up, two of three could share four places between them and leave the third none.
 */
export function roomUnderCap(maxActive: number, active: number, claimant: Claimant, others: Claimant[]): number {
  const free = Math.max(0, maxActive - active);
  const sharing = [claimant, ...others].filter(({ slots }) => slots > 0).length;
  const share = Math.max(1, Math.floor(maxActive / Math.max(1, sharing)));
  const unused = (one: Claimant) => Math.max(0, Math.min(share, one.slots) - one.active);
  const reserved = others.reduce((sum, other) => sum + unused(other), 0);
  return Math.min(free, Math.max(unused(claimant), free - reserved));
}
