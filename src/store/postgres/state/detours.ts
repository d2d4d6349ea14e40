// Remembers which fast path of settle fits a queue, and where none did, so that calls do not try it every time.

/** How many calls of a queue skip the fast path after it did not apply. */
const DETOURS = 20;

/** `settle_plain`, `settle_groups` and `settle_children` in sql/settle.sql. */
export type FastPath = 'plain' | 'groups' | 'children';

/** The parts of the reply to a settle that concern its queue. */
export interface PathReply {
  /** True if the call took the fast path. */
  plain?: boolean;
  /** True if the queue has groups. */
  grouped?: boolean;
  /** True if the call has written messages. */
  sent?: boolean;
}

export class Detours {
  readonly #left = new Map<string, number>();
  /** The paths of queues that have groups, or children whose ends were reported. The others take `plain`. */
  readonly #paths = new Map<string, FastPath>();

  /** Returns the fast path that this call should try. Undefined: none. */
  pathOf(queue: string): FastPath | undefined {
    const left = this.#left.get(queue);
    if (left === undefined) return this.#paths.get(queue) ?? 'plain';
    if (left > 1) this.#left.set(queue, left - 1);
    else this.#left.delete(queue);
    return undefined;
  }

  /** Learns from the reply to a call, which took the fast path if `path` is set. */
  learn(queue: string, path: FastPath | undefined, { plain, grouped, sent }: PathReply): void {
    const known = this.#paths.get(queue);
    const better = grouped === true ? 'groups' : sent === true ? 'children' : known;
    if (better !== undefined && better !== known) {
      this.#paths.set(queue, better);
      this.#left.delete(queue);
    } else if (path !== undefined && plain === undefined) this.#left.set(queue, DETOURS);
  }
}
