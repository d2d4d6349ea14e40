// What the lock thread remembers of a block of the main loop, for the report when it is over: which locks each worker held, and where the
// main loop was.
import type { Clock } from '../runtime/clock.js';
import type { BlockSeen, SessionPlan } from '../session/renewer.js';
import type { SessionMemory } from '../session/session-memory.js';
import type { Moment } from '../session/trust.js';
import { StackCapture } from './stack-capture.js';

/** A report names so many jobs of a worker at most. */
const MAX_FENCES = 1000;

interface Watched {
  memory: SessionMemory;
  takesStack: boolean;
}

export class BlockWatch {
  readonly #capture: StackCapture;
  readonly #sessions = new Map<string, Watched>();
  readonly #held = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#capture = new StackCapture(clock);
  }

  /** Only sessions of workers have `blockedStack`: their reports name the jobs that ran. */
  keep({ id, blockedStack }: SessionPlan, memory: SessionMemory): void {
    if (blockedStack !== undefined) this.#sessions.set(id, { memory, takesStack: blockedStack });
  }

  release(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  /** The main loop is blocked. `refusal`: why its stack must not be taken. */
  begin(refusal: string | undefined): void {
    this.#held.clear();
    for (const [id, { memory }] of this.#sessions) this.#held.set(id, memory.fences(MAX_FENCES));
    const isWanted = [...this.#sessions.values()].some(({ takesStack }) => takesStack);
    this.#capture.begin(refusal ?? (isWanted ? undefined : OFF));
  }

  /** The process exits: a stack that is asked for is not taken any more. */
  stop(): void {
    this.#capture.stop();
  }

  /** The block is over. Returns what was seen of each session. */
  end(endedAt: Moment): (sessionId: string) => { seen?: BlockSeen } {
    const stack = this.#capture.end(endedAt);
    return (sessionId) => {
      const session = this.#sessions.get(sessionId);
      if (session === undefined) return {};
      const fences = this.#held.get(sessionId) ?? session.memory.fences(MAX_FENCES);
      return { seen: { fences, stack: session.takesStack ? stack : `(not taken: ${OFF})` } };
    };
  }
}

const OFF = 'blockedStack is false';
