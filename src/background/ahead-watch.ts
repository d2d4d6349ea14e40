// Finds workers whose event loop is blocked while they have jobs that they claimed ahead. Their own timer, which hands such jobs back, cannot
// fire then. A worker with such jobs notes the time every few ms in the memory of its session.
import type { Clock } from '../runtime/clock.js';
import { clearInterval, setInterval } from '../runtime/timers.js';
import { between, now, type Moment } from '../session/trust.js';
import type { SessionMemory } from '../session/session-memory.js';

/** How often the thread looks, in ms, while a worker has jobs that were claimed ahead. */
const LOOK_MS = 20;
/** A worker that has noted no time for this long, in ms, is blocked. */
const BLOCKED_MS = 50;
/** If two looks are further apart than this, in ms, the thread itself did not run, and most likely the worker did not either. */
const OWN_GAP_MS = 100;
/** A worker without such jobs is watched for this many looks more. Its next job that is claimed ahead costs a message then. */
const QUIET_LOOKS = 50;

interface Watched {
  memory: SessionMemory;
  /** Looks in a row without a job that was claimed ahead. */
  quiet: number;
  giveBack(fences: number[]): void;
}

export class AheadWatch {
  readonly #clock: Clock;
  readonly #watched = new Map<string, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #lookedAt: Moment = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Watches a session until it has had no jobs that were claimed ahead for a while. */
  add(sessionId: string, memory: SessionMemory, giveBack: (fences: number[]) => void): void {
    this.#watched.set(sessionId, { memory, quiet: 0, giveBack });
    if (this.#timer !== undefined) return;
    this.#lookedAt = now(this.#clock);
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  delete(sessionId: string): void {
    this.#watched.delete(sessionId);
    if (this.#watched.size === 0) this.stop();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#watched.clear();
  }

  #look(): void {
    const time = now(this.#clock);
    const ownGap = between(this.#lookedAt, time);
    this.#lookedAt = time;
    if (ownGap > OWN_GAP_MS) return;
    for (const [sessionId, watched] of this.#watched) {
      const { memory } = watched;
      const at = memory.aheadAt;
      watched.quiet = at === undefined ? watched.quiet + 1 : 0;
      if (at !== undefined && between(at, time) > BLOCKED_MS) {
        const fences = memory.takeAhead();
        if (fences.length > 0) watched.giveBack(fences);
      } else if (watched.quiet > QUIET_LOOKS) {
        memory.unwatch();
        // The worker may have claimed ahead since, and have found itself watched.
        if (memory.aheadAt === undefined || !memory.watch()) this.delete(sessionId);
      }
    }
  }
}
