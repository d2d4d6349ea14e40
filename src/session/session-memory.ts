// The words of memory that a session owner shares with its renewer, so that a handler that blocks its event loop can still read them.
// The renewer writes the deadlines and the lost locks. The owner writes which locks it holds and how many jobs it can run.
// No message is sent per job: the renewer finds a lock by its fence.
import { between, type Moment } from './trust.js';

/** The buffers that are passed to the thread. Slots come in blocks, so that a worker can raise its concurrency while it runs. */
export interface SessionBuffers {
  words: SharedArrayBuffer;
  slots: SharedArrayBuffer[];
}

const STATE = 0;
const TRUST = 1;
const SLOTS = 2;
const CONFIRMED = 3;
const LEASED = 4;
const AHEAD_AT = 5;
const WATCHED = 6;
const WORDS = 7;
const ALIVE = 0;
const LOST = 1;

export const SLOTS_PER_BLOCK = 256;
/** Set in the slot of a job that was claimed ahead, until its run begins. Fences are smaller. */
const AHEAD = 1n << 62n;
/** The largest number that fits in a word. A worker on a store that runs handlers inside `add` has no limit. */
export const MOST_SLOTS = 2 ** 31 - 1;

export class SessionMemory {
  readonly buffers: SessionBuffers;
  readonly #words: Int32Array;
  /** A slot holds 0 when free, a fence while its lock is ours (with AHEAD until its run begins), and the negated fence once it was lost. */
  readonly #blocks: BigInt64Array[];

  constructor(buffers: SessionBuffers = newBuffers()) {
    this.buffers = buffers;
    this.#words = new Int32Array(buffers.words);
    this.#blocks = buffers.slots.map((slots) => new BigInt64Array(slots));
  }

  get alive(): boolean {
    return Atomics.load(this.#words, STATE) === ALIVE;
  }

  markLost(): void {
    Atomics.store(this.#words, STATE, LOST);
  }

  get trustedUntil(): Moment {
    return Atomics.load(this.#words, TRUST);
  }

  /** Sets the first trust deadline of a session, before the renewer gets the session. */
  startTrust(until: Moment): void {
    Atomics.store(this.#words, TRUST, until);
  }

  extendTrust(until: Moment): void {
    this.#extend(TRUST, until);
  }

  /**
   * The end of the last confirmation from the store that the owner is not under suspicion. Undefined where crash hints cannot be
   * wrong, or where the grace needs no check.
   */
  get confirmedUntil(): Moment | undefined {
    return Atomics.load(this.#words, LEASED) === 0 ? undefined : Atomics.load(this.#words, CONFIRMED);
  }

  startConfirming(until: Moment): void {
    Atomics.store(this.#words, CONFIRMED, until);
    Atomics.store(this.#words, LEASED, 1);
  }

  extendConfirmation(until: Moment): void {
    if (Atomics.load(this.#words, LEASED) !== 0) this.#extend(CONFIRMED, until);
  }

  /** True if at least one lock of the session is ours. */
  get holdsAny(): boolean {
    return this.#blocks.some((block) => block.some((_, slot) => Atomics.load(block, slot) > 0n));
  }

  /** The fences of the locks that are ours, `most` of them at most. */
  fences(most: number): number[] {
    const fences: number[] = [];
    for (const block of this.#blocks) {
      for (let slot = 0; slot < block.length && fences.length < most; slot += 1) {
        const word = Atomics.load(block, slot);
        if (word > 0n) fences.push(fenceOf(word));
      }
    }
    return fences;
  }

  /** How many jobs the session's owner can run at once. The renewer sends the number to the store. */
  get slots(): number {
    return Atomics.load(this.#words, SLOTS);
  }

  set slots(slots: number) {
    Atomics.store(this.#words, SLOTS, Math.min(slots, MOST_SLOTS));
  }

  get capacity(): number {
    return this.#blocks.length * SLOTS_PER_BLOCK;
  }

  /** Returns the new block, to be passed to the renewer. */
  addBlock(block: SharedArrayBuffer = newBlock()): SharedArrayBuffer {
    this.buffers.slots.push(block);
    this.#blocks.push(new BigInt64Array(block));
    return block;
  }

  occupy(slot: number, fence: number, isAhead = false): void {
    Atomics.store(this.#block(slot), slot % SLOTS_PER_BLOCK, isAhead ? AHEAD | BigInt(fence) : BigInt(fence));
  }

  /**
   * Begins the run of a job that was claimed ahead. Returns false if its lock was lost, or if the renewer has taken the job to give it back:
   * then the run must not begin. Compare-and-set, because both may happen at once.
   */
  begin(slot: number, fence: number): boolean {
    const begun = BigInt(fence);
    return Atomics.compareExchange(this.#block(slot), slot % SLOTS_PER_BLOCK, AHEAD | begun, begun) === (AHEAD | begun);
  }

  /** Takes the jobs that were claimed ahead and have not begun, for the renewer to give them back. Their runs cannot begin any more. */
  takeAhead(): number[] {
    const fences: number[] = [];
    for (const block of this.#blocks) {
      for (let slot = 0; slot < block.length; slot += 1) {
        const word = Atomics.load(block, slot);
        if (word < AHEAD) continue;
        const fence = fenceOf(word);
        if (Atomics.compareExchange(block, slot, word, -BigInt(fence)) === word) fences.push(fence);
      }
    }
    return fences;
  }

  /** When the owner last looked at its jobs that were claimed ahead. Undefined: it has none. An owner with such jobs looks every few ms. */
  get aheadAt(): Moment | undefined {
    const at = Atomics.load(this.#words, AHEAD_AT);
    return at === 0 ? undefined : at;
  }

  set aheadAt(time: Moment | undefined) {
    Atomics.store(this.#words, AHEAD_AT, time === undefined ? 0 : time || 1);
  }

  /** Asks for a watch of `aheadAt` by the renewer. Returns false if there is one already. */
  watch(): boolean {
    return Atomics.exchange(this.#words, WATCHED, 1) === 0;
  }

  unwatch(): void {
    Atomics.store(this.#words, WATCHED, 0);
  }

  get isWatched(): boolean {
    return Atomics.load(this.#words, WATCHED) !== 0;
  }

  vacate(slot: number): void {
    Atomics.store(this.#block(slot), slot % SLOTS_PER_BLOCK, 0n);
  }

  holds(slot: number): boolean {
    return Atomics.load(this.#block(slot), slot % SLOTS_PER_BLOCK) > 0n;
  }

  /** The same for a reader that does not know when the slot goes to another lock. */
  holdsFence(slot: number, fence: number): boolean {
    const word = Atomics.load(this.#block(slot), slot % SLOTS_PER_BLOCK);
    return word > 0n && fenceOf(word) === fence;
  }

  /** Returns where a thread finds a slot: buffers of which the slot's block is the only one, and the slot in it. */
  placeOf(slot: number): { words: SharedArrayBuffer; block: SharedArrayBuffer; slot: number } {
    const block = this.buffers.slots[Math.floor(slot / SLOTS_PER_BLOCK)] as SharedArrayBuffer;
    return { words: this.buffers.words, block, slot: slot % SLOTS_PER_BLOCK };
  }

  /** Marks one lock as lost. For the owner, which knows the slot: a session that ends loses all its locks in one turn of the event loop. */
  loseSlot(slot: number, fence: number): void {
    loseWord(this.#block(slot), slot % SLOTS_PER_BLOCK, BigInt(fence));
  }

  /** Marks the lock with this fence as lost. Compare-and-set, because the slot may hold another job's lock by now. */
  lose(fence: number): void {
    const held = BigInt(fence);
    for (const block of this.#blocks) {
      for (let slot = 0; slot < block.length; slot += 1) {
        if (loseWord(block, slot, held)) return;
      }
    }
  }

  /** Moves a deadline later, never earlier: the loop and the thread may both renew, and replies may overtake each other. */
  #extend(word: number, until: Moment): void {
    for (;;) {
      const current = Atomics.load(this.#words, word);
      if (between(current, until) <= 0) return;
      if (Atomics.compareExchange(this.#words, word, current, until) === current) return;
    }
  }

  #block(slot: number): BigInt64Array {
    return this.#blocks[Math.floor(slot / SLOTS_PER_BLOCK)] as BigInt64Array;
  }
}

function fenceOf(word: bigint): number {
  return Number(word < AHEAD ? word : word - AHEAD);
}

/** A run may begin between the two tries, but it never goes back to be ahead. */
function loseWord(block: BigInt64Array, slot: number, held: bigint): boolean {
  return [AHEAD | held, held].some((word) => Atomics.compareExchange(block, slot, word, -held) === word);
}

function newBuffers(): SessionBuffers {
  return { words: new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT), slots: [newBlock()] };
}

function newBlock(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS_PER_BLOCK * BigInt64Array.BYTES_PER_ELEMENT);
}
