// Checks whether another process runs under the same user-given instance id, and reports it. A program that was killed and restarted
// finds its own last session, which is no longer renewed. So a session counts as another process only if it was renewed between two checks.
import { hostname } from 'node:os';
import { HoldfastError } from '../errors.js';
import type { SessionInfo, Store } from '../store/contract/index.js';
import { clearInterval, setInterval } from '../runtime/timers.js';

export interface InstanceWatchOptions {
  store: Store;
  queue: string;
  instanceId: string;
  lookMs: number;
  onError(error: Error): void;
}

const MIN_LOOK_MS = 100;
const MAX_LOOK_MS = 30_000;

export class InstanceWatch {
  readonly #options: InstanceWatchOptions;
  readonly #timer: NodeJS.Timeout;
  /** Renewal counts of the other processes' sessions at the last check. */
  #renewals = new Map<string, number>();
  /** Processes that were already reported. */
  readonly #reported = new Set<string>();
  #looking = false;

  constructor(options: InstanceWatchOptions) {
    this.#options = options;
    const ms = Math.min(MAX_LOOK_MS, Math.max(MIN_LOOK_MS, options.lookMs));
    this.#timer = setInterval(() => void this.#look(), ms).unref();
    void this.#look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const { store, queue, instanceId } = this.#options;
    try {
      const others = (await store.sessions(queue)).filter(({ owner }) => owner.instance === instanceId && !isOurs(owner));
      for (const session of others) if (session.renewals > (this.#renewals.get(session.id) ?? Infinity)) this.#report(session);
      this.#renewals = new Map(others.map(({ id, renewals }) => [id, renewals]));
    } catch {
      // A failed check is not reported: renewal reports an unreachable store, and the next check sees as much as this one would have.
    } finally {
      this.#looking = false;
    }
  }

  #report({ owner: { host, pid } }: SessionInfo): void {
    const { queue, instanceId, onError } = this.#options;
    const who = `process ${pid} on ${host}`;
    if (this.#reported.has(who)) return;
    this.#reported.add(who);
    const message = `The instanceId "${instanceId}" is used by ${who} too, so the two cannot be told apart. Give each running process one of its own, or leave it out.`;
    onError(new HoldfastError('INSTANCE_TAKEN', message, { queue, option: 'instanceId' }));
  }
}

function isOurs({ host, pid }: { host: string; pid: number }): boolean {
  return pid === process.pid && host === hostname();
}
