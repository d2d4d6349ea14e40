// Remembers the last call of every caller and its reply. If a caller repeats a call because the reply was lost, the store returns
// the remembered reply and does not carry out the call again.
import { HoldfastError } from '../../../errors.js';
import type { Call } from '../../contract/index.js';

const REMEMBERED_MS = 10 * 60_000;

interface Remembered<R> {
  caller: string;
  seq: number;
  reply: R;
  at: number;
}

export class CallMemory<R> {
  /** Least recently used first. */
  readonly #calls = new Map<string, Remembered<R>>();
  /** The last place that was set. It is the last of `#calls`, or no longer in it. */
  #newest: string | undefined;

  /** Returns the reply of the same call if the store has already carried it out; otherwise undefined. */
  recall(call: Call): R | undefined {
    const { caller, seq } = call;
    const last = this.#calls.get(placeOf(call));
    if (last === undefined || seq > last.seq) return undefined;
    if (seq === last.seq) return last.reply;
    // This call is late: its caller gave up on it and has sent a later call. Carrying it out now would make a change that its
    // caller no longer expects.
    throw new HoldfastError('STORE_FAILED', `Call ${seq} of ${caller} came after its call ${last.seq}: number calls upwards.`);
  }

  /**
   * Stores the reply and drops calls older than ten minutes. `lasting` returns true for callers whose last call stays, whatever its
   * age.
   */
  remember(call: Call, reply: R, now: number, lasting: (caller: string) => boolean): void {
    this.#set(placeOf(call), { caller: call.caller, seq: call.seq, reply, at: now });
    for (const [place, remembered] of this.#calls) {
      if (remembered.at >= now - REMEMBERED_MS) break;
      if (lasting(remembered.caller)) this.#set(place, { ...remembered, at: now });
      else this.#calls.delete(place);
    }
  }

  forget(caller: string): void {
    this.#calls.delete(placeOf({ caller, seq: 0 }));
  }

  #set(place: string, remembered: Remembered<R>): void {
    // Moves the place to the end. The newest one is there: deleting it would make the Map build a new table every few calls.
    if (place !== this.#newest) this.#calls.delete(place);
    this.#newest = place;
    this.#calls.set(place, remembered);
  }
}

/** Returns the map key. Each lane of a caller has its own last call. */
function placeOf({ caller, lane = 0 }: Call): string {
  return lane === 0 ? caller : `${caller}\0${lane}`;
}
