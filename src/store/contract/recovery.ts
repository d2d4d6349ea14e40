// Dead sessions: finding them, and handing back what they held.
import type { SessionRef } from './sessions.js';

export interface Recovery {
  /**
   * Reaps expired sessions and locks whose own end has passed, at most `limit` locks per call. Their jobs go to the front of
   * waiting, those of a session in the order in which they were claimed, with one more stall, or, over the session's maxStalls, to failed with STALLED_REASON (the job's removeOnFail holds).
   * Each job's `lostBy` then names the session's owner and how the sweep found the loss: `lock-expired` for a timed lock, `process-gone` for
   * a session that ended under a suspicion (`probe`), `session-expired` for any other.
   * Named locks of dead sessions become free and their places in line are lost; each counts as a lock under `limit`. A session that was
   * swept in part stays dead for renewals and claims. Atomic and idempotent: any number of sweepers may run.
   */
  sweep(queue: string, limit: number): Promise<SweepReply>;
  /**
   * Looks for owners that are surely gone (their process died) and leaves each of their sessions at most its own grace from now;
   * never ends one, never lengthens one, and shortens one that is under suspicion already no further. Stores without a hint suspect
   * nobody.
   */
  probe(queue: string): Promise<ProbeReply>;
  /**
   * Whether sessions are open, have not expired and are under no suspicion. True: whatever is suspected later, nobody gets what the session
   * holds before its grace has passed since the question was sent (or its expiry, which is as before). Changes nothing.
   */
  unsuspected(sessions: SessionRef[]): Promise<boolean[]>;
}

export interface ProbeReply {
  /** About how many open sessions there are that may look for the dead too: they share the work. */
  sessions: number;
  /**
   * When the first of those under suspicion ends, also of those that others suspect (who may themselves be gone before they sweep);
   * 0 when it has. Absent: nobody is under suspicion.
   */
  dueInMs?: number;
}

export interface SweepReply {
  /** Back to waiting. */
  stalled: string[];
  /** Over the limit. */
  failed: string[];
  /**
   * JSON texts of LostBy: one for each of `stalled`, then one for each of `failed`. Absent where both are empty; null where the session's
   * record is missing.
   */
  lostBy?: (string | null)[];
  /** More is dead than `limit`: call again. */
  more: boolean;
}
