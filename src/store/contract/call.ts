// The number of a call: what makes a write repeatable.

/**
 * Makes a write repeatable after a lost reply. A caller numbers its calls 1, 2, 3 …, has one in flight at a time, and repeats a
 * call whose reply it did not get with the same number: the store then answers as it did the first time and changes nothing.
 * A number below the last one changes nothing either: it is answered from what is left of it, or refused.
 * A producer has a caller id of its own; a worker's is its session's id.
 * With the capability `lanes`, a worker may have that many calls (settles, claims) in flight, each in a lane of its own: what is said
 * of one call at a time and of numbers below the last holds for each lane by itself. No number is used in two lanes of one caller.
 */
export interface Call {
  caller: string;
  seq: number;
  /** From 0, which it is where nothing is said. */
  lane?: number;
}
