// The last call of every caller, so that one whose reply was lost is answered again and not carried out again.
import { HoldfastError } from '../../errors.js';
import type { Call } from '../contract/index.js';

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

  /** The reply that the same call got, if it was carried out already. */
  recall(call: Call): R | undefined {
    const { caller, seq } = call;
    const last = this.#calls.get(placeOf(call));
    if (last === undefined || seq > last.seq) return undefined;
    if (seq === last.seq) return last.reply;
    // A straggler: its caller gave up on it and went on, so carrying it out now would be a surprise to everyone.
    throw new HoldfastError('STORE_FAILED', `Call ${seq} of ${caller} came after its call ${last.seq}: number calls upwards.`);
  }

  /** `lasting` says whose last call is kept however long ago it was. */
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
    this.#calls.delete(place);
    this.#calls.set(place, remembered);
  }
}

/** Each lane of a caller has a last call of its own. */
function placeOf({ caller, lane = 0 }: Call): string {
  return lane === 0 ? caller : `${caller}\0${lane}`;
}
