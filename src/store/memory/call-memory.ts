// The last call of every caller, so that one whose reply was lost is answered again and not carried out again.
import { HoldfastError } from '../../errors.js';
import type { Call } from '../contract.js';

const REMEMBERED_MS = 10 * 60_000;

interface Remembered<R> {
  seq: number;
  reply: R;
  at: number;
}

export class CallMemory<R> {
  /** Least recently used first. */
  readonly #calls = new Map<string, Remembered<R>>();

  /** The reply that the same call got, if it was carried out already. */
  recall({ caller, seq }: Call): R | undefined {
    const last = this.#calls.get(caller);
    if (last === undefined || seq > last.seq) return undefined;
    if (seq === last.seq) return last.reply;
    // A straggler: its caller gave up on it and went on, so carrying it out now would be a surprise to everyone.
    throw new HoldfastError('STORE_FAILED', `Call ${seq} of ${caller} came after its call ${last.seq}: number calls upwards.`);
  }

  /** `lasting` says whose last call is kept however long ago it was. */
  remember({ caller, seq }: Call, reply: R, now: number, lasting: (caller: string) => boolean): void {
    this.#set(caller, { seq, reply, at: now });
    for (const [id, remembered] of this.#calls) {
      if (remembered.at >= now - REMEMBERED_MS) break;
      if (lasting(id)) this.#set(id, { ...remembered, at: now });
      else this.#calls.delete(id);
    }
  }

  #set(caller: string, remembered: Remembered<R>): void {
    this.#calls.delete(caller);
    this.#calls.set(caller, remembered);
  }
}
