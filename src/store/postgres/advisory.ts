/** The first keys of our advisory locks ("Hfst" and what follows), so that nobody else's are taken for ours. */
export const ADVISORY = {
  /** The second key is what `sessions.vouched` names. */
  presence: 0x48667374,
  /** The second key is made of the schema's name. */
  migration: 0x48667375,
  fences: 0x48667376,
  /** Held to its end by a transaction that notifies and writes. */
  telling: 0x48667377,
} as const;
