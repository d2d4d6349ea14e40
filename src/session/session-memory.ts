// The few words that a worker and its renewer share about a session, readable by a handler that blocks its loop. The renewer writes
// the deadlines and what was lost; the worker writes which locks run and how many jobs it is willing to run. Nothing is ever sent per job: a lock is found by its fence.
import { between, type Moment } from './trust.js';

/** What crosses to the thread. Slots come in blocks, so that a worker whose concurrency is raised can grow while it runs. */
export interface SessionBuffers {
  words: SharedArrayBuffer;
  slots: SharedArrayBuffer[];
}

const STATE = 0;
const TRUST = 1;
const SLOTS = 2;
const HEARD = 3;
const LEASED = 4;
const WORDS = 5;
const ALIVE = 0;
const LOST = 1;

export const SLOTS_PER_BLOCK = 256;
/** What a word holds. A worker on a store that runs handlers inside `add` has no limit. */
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

  /** The first trust of a session, before anybody else knows it. */
  startTrust(until: Moment): void {
    Atomics.store(this.#words, TRUST, until);
  }

  extendTrust(until: Moment): void {
    this.#extend(TRUST, until);
  }

  /** Until when the store has said that nobody takes the owner for dead; undefined where nobody could by mistake. */
  get heardUntil(): Moment | undefined {
    return Atomics.load(this.#words, LEASED) === 0 ? undefined : Atomics.load(this.#words, HEARD);
  }

  startHearing(until: Moment): void {
    Atomics.store(this.#words, HEARD, until);
    Atomics.store(this.#words, LEASED, 1);
  }

  extendHearing(until: Moment): void {
    if (Atomics.load(this.#words, LEASED) !== 0) this.#extend(HEARD, until);
  }

  /** Some lock of it is ours. */
  get holdsAny(): boolean {
    return this.#blocks.some((block) => block.some((_, slot) => Atomics.load(block, slot) > 0n));
  }

  /** How many jobs the session's owner is willing to run; the renewer tells the store. */
  get slots(): number {
    return Atomics.load(this.#words, SLOTS);
  }

  set slots(slots: number) {
    Atomics.store(this.#words, SLOTS, Math.min(slots, MOST_SLOTS));
  }

  get capacity(): number {
    return this.#blocks.length * SLOTS_PER_BLOCK;
  }

  /** Answers the new block, for the renewer. */
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

  /** By its owner, who knows the slot: a session that ends loses all of its locks in one turn. */
  loseSlot(slot: number, fence: number): void {
    Atomics.compareExchange(this.#block(slot), slot % SLOTS_PER_BLOCK, BigInt(fence), -BigInt(fence));
  }

  /** Marks the lock with this fence as lost. Compare-and-set: the slot may have moved on to another job in between. */
  lose(fence: number): void {
    const held = BigInt(fence);
    for (const block of this.#blocks) {
      for (let slot = 0; slot < block.length; slot += 1) {
        if (Atomics.compareExchange(block, slot, held, -held) === held) return;
      }
    }
  }

  /** Only ever later: the loop and the thread may both ask, and replies may overtake each other. */
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
