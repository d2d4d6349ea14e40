// Holds the outcomes of runs and the claimed jobs that go back, until they are sent to the store. Runs and the reconciler fill it, and the store
// loop drains it, so that neither side needs the other.
import type { HoldfastError } from '../errors.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { withinReply } from '../store/budget.js';
import type { Substituted } from '../store/client/refusal.js';
import { skipped } from '../store/client/schedule-plan.js';

export interface Delivery {
  outcome: Outcome;
  /** Called if the store refuses the outcome permanently. Returns the outcome to settle instead, or undefined if there is none. */
  substitute(refusal: HoldfastError): Outcome | undefined;
  /** 'unknown': the worker was closed before the store replied. `substituted`: the store took that in place of the outcome. */
  settled(status: SettleStatus | 'unknown', error?: Error, substituted?: Substituted): void;
}

/** A job under the lock of one claim. */
export type ClaimRef = Pick<ClaimedJob, 'id' | 'token'>;

export interface OutboxListener {
  /** The outcome of a run was added. */
  onDelivery(): void;
  /** Jobs that go back were added. */
  onReturn(): void;
  /** A run ended that had nothing to deliver. */
  onSlotFreed(): void;
}

export class Outbox {
  #listener: OutboxListener | undefined;
  readonly #deliveries: Delivery[] = [];
  /** Outcomes of claimed jobs that do not begin, in the order in which they were claimed. */
  readonly #returning: Outcome[] = [];

  set listener(listener: OutboxListener) {
    this.#listener = listener;
  }

  /** The number of outcomes of runs. */
  get deliveries(): number {
    return this.#deliveries.length;
  }

  get isEmpty(): boolean {
    return this.#deliveries.length === 0 && this.#returning.length === 0;
  }

  deliver(delivery: Delivery): void {
    this.#deliveries.push(delivery);
    this.#listener?.onDelivery();
  }

  slotFreed(): void {
    this.#listener?.onSlotFreed();
  }

  /** Hands back jobs that were not begun, to the front of waiting, in their old order. */
  handBack(jobs: ClaimRef[]): void {
    this.#giveBack('return', jobs);
  }

  /** Hands back jobs that may have begun: their counted start stays. */
  release(jobs: ClaimRef[]): void {
    this.#giveBack('release', jobs);
  }

  /** Ends jobs that are not to run. */
  skip(jobs: ClaimRef[]): void {
    for (const job of jobs) this.#returning.push(skipped(job));
    this.#listener?.onReturn();
  }

  /** The tokens of all outcomes that wait for a call. */
  tokens(): string[] {
    return [...this.#deliveries.map(({ outcome }) => outcome.token), ...this.#returning.map(({ token }) => token)];
  }

  /** Takes out the first `most` deliveries, or fewer if they are too large for one call. */
  takeDeliveries(most: number): Delivery[] {
    return this.#deliveries.splice(0, withinReply(this.#deliveries.slice(0, most), sizeOf).length);
  }

  /** Moves jobs that go back to `outcomes`, up to `most` outcomes. The store puts each to the very front, so the last one goes first. */
  moveReturning(outcomes: Outcome[], most: number): void {
    while (this.#returning.length > 0 && outcomes.length < most) outcomes.push(this.#returning.pop() as Outcome);
  }

  #giveBack(kind: 'return' | 'release', jobs: ClaimRef[]): void {
    for (const { id, token } of jobs) this.#returning.push({ kind, jobId: id, token });
    this.#listener?.onReturn();
  }
}

function sizeOf({ outcome }: Delivery): number {
  return outcome.kind === 'completed' ? outcome.value.length : 0;
}
