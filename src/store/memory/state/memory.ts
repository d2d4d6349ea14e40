// The queues of a memory store, and its clock. The operations (operations.ts) read and write them.
import { type Clock, systemClock } from '../../../runtime/clock.js';
import { fakedNow, onFakeTimer } from '../../../runtime/faked-time.js';
import type { ClaimReply } from '../../contract/index.js';
import { QueueState } from './queue-state.js';

export class Memory {
  readonly queues = new Map<string, QueueState>();
  readonly #clock: Clock;
  readonly #epoch: number;
  readonly #mayBeFaked: boolean;
  /** Milliseconds by which a faked clock is ahead of the genuine clock. */
  #shift = 0;
  /** The queues that the running call may have changed beside its own, with their last events before. */
  readonly #peers = new Map<QueueState, number>();
  readonly #alarms = new Map<QueueState, () => void>();

  constructor(clock: Clock | undefined) {
    this.#clock = clock ?? systemClock;
    this.#mayBeFaked = clock === undefined;
    // Read once, so a step of the wall clock does not move the store's time.
    this.#epoch = this.#clock.wall() - this.#clock.monotonic();
  }

  /** Runs `work` and wakes the watchers if it wrote an event. */
  write<T>(queue: string, work: (state: QueueState, now: number) => T): T {
    const state = this.state(queue);
    const lastEvent = state.log.last;
    const result = work(state, this.now());
    if (state.log.last !== lastEvent) state.wake.signal();
    this.changed(state);
    if (this.#peers.size > 0) this.#peersChanged();
    return result;
  }

  state(queue: string): QueueState {
    let state = this.queues.get(queue);
    if (state === undefined) {
      state = new QueueState(
        queue,
        () => Math.floor(this.#clock.wall()),
        (name) => this.#peer(name),
      );
      this.queues.set(queue, state);
    }
    return state;
  }

  #peer(name: string): QueueState {
    const state = this.state(name);
    if (!this.#peers.has(state)) this.#peers.set(state, state.log.last);
    return state;
  }

  #peersChanged(): void {
    const peers = [...this.#peers];
    this.#peers.clear();
    for (const [state, lastEvent] of peers) {
      if (state.log.last !== lastEvent) state.wake.signal();
      this.changed(state);
    }
  }

  /** Returns the store's epoch ms with fractions, because rounding could make a session expire early. */
  now(): number {
    const time = this.#clock.monotonic() + this.#epoch;
    return this.#mayBeFaked ? this.#follow(time) : time;
  }

  /**
   * Workers wait for delays on genuine timers, which fire too late when a test moves a faked clock. A fake timer wakes them
   * instead.
   */
  wakeWhenDue(queue: string, { nextInMs }: ClaimReply): void {
    if (!this.#mayBeFaked || nextInMs === undefined) return;
    const state = this.state(queue);
    this.#alarms.get(state)?.();
    this.#alarms.delete(state);
    const cancel = onFakeTimer(nextInMs, () => state.wake.signal());
    if (cancel !== undefined) this.#alarms.set(state, cancel);
  }

  close(): void {
    for (const cancel of this.#alarms.values()) cancel();
    this.#alarms.clear();
    for (const queue of this.queues.values()) queue.wake.clear();
    this.queues.clear();
  }

  /** Called after every verb that may have changed the queue. The sync store overrides it. */
  protected changed(_state: QueueState): void {}

  /**
   * If a test has faked the clock, the faked clock decides when delays, rate limits and ages end. Sessions and locks are renewed on
   * the genuine clock and keep living by it, so their ends move along with the faked clock.
   */
  #follow(time: number): number {
    const faked = fakedNow();
    const shift = faked === undefined ? 0 : faked - time;
    if (shift !== this.#shift) {
      for (const queue of this.queues.values()) queue.moveEnds(shift - this.#shift);
      this.#shift = shift;
    }
    return time + shift;
  }
}
