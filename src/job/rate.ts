// The rate limit that applies to a claim. Stores that compute in TypeScript share this rule; the others state it in their own language.

/** At most `max` claims within `durationMs`. */
export interface RateLimit {
  max: number;
  durationMs: number;
}

/** Returns the limit of a claim: the `max` of the queue and the duration of the claim come first, as in BullMQ. */
export function limitOfClaim(ofQueue: RateLimit | undefined, ofClaim: RateLimit | undefined): RateLimit | undefined {
  if (ofQueue === undefined) return ofClaim;
  return { max: ofQueue.max, durationMs: ofClaim?.durationMs ?? ofQueue.durationMs };
}
