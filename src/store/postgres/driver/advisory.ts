/** The first keys of our advisory locks ("Hfst" and the next numbers), which keep them apart from locks of other software. */
export const ADVISORY = {
  /** The second key is the number in `sessions.vouched`. */
  presence: 0x48667374,
  /** The second key is a hash of the schema's name. */
  migration: 0x48667375,
  fences: 0x48667376,
  /** A transaction that both notifies and writes holds it to its end. */
  telling: 0x48667377,
} as const;
