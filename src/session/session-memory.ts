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
const WORDS = 5;
const ALIVE = 0;
const LOST = 1;

export const SLOTS_PER_BLOCK = 256;
/** The largest number that fits in a word. A worker on a store that runs handlers inside `add` has no limit. */
export const MOST_SLOTS = 2 ** 31 - 1;

export class SessionMemory {
  readonly buffers: SessionBuffers;
  readonly #words: Int32Array;
  /** A slot holds 0 when free, a fence while its lock is ours, and the negated fence once it was lost. */
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
        const fence = Number(Atomics.load(block, slot));
        if (fence > 0) fences.push(fence);
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

  occupy(slot: number, fence: number): void {
    Atomics.store(this.#block(slot), slot % SLOTS_PER_BLOCK, BigInt(fence));
  }

  vacate(slot: number): void {
    Atomics.store(this.#block(slot), slot % SLOTS_PER_BLOCK, 0n);
  }

  holds(slot: number): boolean {
    return Atomics.load(this.#block(slot), slot % SLOTS_PER_BLOCK) > 0n;
  }

  /** The same for a reader that does not know when the slot goes to another lock. */
  holdsFence(slot: number, fence: number): boolean {
    return Atomics.load(this.#block(slot), slot % SLOTS_PER_BLOCK) === BigInt(fence);
  }

  /** Returns where a thread finds a slot: buffers of which the slot's block is the only one, and the slot in it. */
  placeOf(slot: number): { words: SharedArrayBuffer; block: SharedArrayBuffer; slot: number } {
    const block = this.buffers.slots[Math.floor(slot / SLOTS_PER_BLOCK)] as SharedArrayBuffer;
    return { words: this.buffers.words, block, slot: slot % SLOTS_PER_BLOCK };
  }

  /** Marks one lock as lost. For the owner, which knows the slot: a session that ends loses all its locks in one turn of the event loop. */
  loseSlot(slot: number, fence: number): void {
    Atomics.compareExchange(this.#block(slot), slot % SLOTS_PER_BLOCK, BigInt(fence), -BigInt(fence));
  }

  /** Marks the lock with this fence as lost. Compare-and-set, because the slot may hold another job's lock by now. */
  lose(fence: number): void {
    const held = BigInt(fence);
    for (const block of this.#blocks) {
      for (let slot = 0; slot < block.length; slot += 1) {
        if (Atomics.compareExchange(block, slot, held, -held) === held) return;
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

function newBuffers(): SessionBuffers {
  return { words: new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT), slots: [newBlock()] };
}

function newBlock(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS_PER_BLOCK * BigInt64Array.BYTES_PER_ELEMENT);
}
