// Recovery: finding dead sessions, and handing back the jobs and locks that they held.
import type { SessionRef } from './sessions.js';

export interface Recovery {
  /**
   * Ends expired sessions and expired timed locks, at most `limit` locks per call. Their jobs move to the front of waiting with one more
   * stall; the jobs of one session keep the order of their claims. A job over the session's maxStalls fails with STALLED_REASON instead
   * (its removeOnFail applies).
   * The job's `lostBy` names the session's owner and how the sweep found the loss: `lock-expired` for a timed lock, `process-gone` for
   * a session that ended under a suspicion (`probe`), `session-expired` for any other.
   * Named locks of dead sessions become free, and dead sessions lose their places in line. Each counts as a lock under `limit`. A session
   * that was swept in part stays dead for renewals and claims. Atomic and idempotent: any number of sweepers may run.
   */
  sweep(queue: string, limit: number): Promise<SweepReply>;
  /**
   * Finds owners whose process surely died, and marks their sessions as suspected: each has at most its own grace left. A probe never
   * ends or lengthens a session, and shortens a suspected one no further. A store without crash hints suspects no session.
   */
  probe(queue: string): Promise<ProbeReply>;
  /** Returns one check per session, in order. Changes nothing. */
  checkSessions(sessions: SessionRef[]): Promise<SessionCheck[]>;
}

export interface SessionCheck {
  /**
   * True if the session is open, has not expired and is not suspected. Its locks then stay its own at least for its grace, counted from
   * before the call was sent (or until its expiry, if that comes first), even if it is suspected later.
   */
  unsuspected: boolean;
  /** True if the store holds a notice for the session: the next renewal returns it, unless it was returned and not acked yet. */
  noticed: boolean;
}

export interface ProbeReply {
  /** The approximate number of open sessions that may probe too: they share the work. */
  sessions: number;
  /**
   * Until the first suspected session ends, also if another process suspected it (that process may die before it sweeps). 0 if one has
   * ended. Absent if no session is suspected.
   */
  dueInMs?: number;
  /** True while a schedule is owing, or there is something to relay. */
  undone?: true;
}

export interface SweepReply {
  /** Ids of jobs that went back to waiting. */
  stalled: string[];
  /** Ids of jobs that failed because they stalled too often. */
  failed: string[];
  /**
   * JSON texts of LostBy: one for each of `stalled`, then one for each of `failed`. Absent if both are empty; null if the session's
   * record is missing.
   */
  lostBy?: (string | null)[];
  /** True if `limit` left dead locks behind: call again. */
  more: boolean;
}
