// Numbered calls, which can be repeated after a lost reply.

/**
 * Makes a write idempotent. A caller numbers its calls 1, 2, 3 … and has one call in flight at a time. If the reply is lost, the caller
 * repeats the call with the same number. The store then returns the first reply again and changes nothing.
 * A number below the last one changes nothing either: the store returns what it still knows of that call, or refuses it.
 * A producer has its own caller id; a worker uses the id of its session.
 * With the capability `lanes`, a worker may have that many calls (settles, claims) in flight, one per lane. The rules above then hold
 * for each lane. A caller never uses one number in two lanes.
 */
export interface Call {
  caller: string;
  seq: number;
  /** Counts from 0. Default 0. */
  lane?: number;
}
