// Handles the loss of a worker's session: the store no longer knows it.
import type { Session } from '../session/session.js';
import type { WorkerContext } from './context.js';

/** All locks bound to the session are lost; locks with their own expiry stay. The next call opens a new session. */
export function loseSession({ table, owner }: WorkerContext, session: Session): void {
  session.memory.markLost();
  table.loseSession(session, 'the store has ended the session of this worker');
  owner.drop(session);
}
