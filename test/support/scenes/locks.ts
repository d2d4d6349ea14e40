// Sessions and locks for unit tests of lock/, on a memory store and a clock under the test's hand.
import { HeldLock } from '../../../src/session/held-lock.js';
import { Session } from '../../../src/session/session.js';
import type { Moment } from '../../../src/session/trust.js';
import { type Clock, systemClock } from '../../../src/runtime/clock.js';
import { MemoryStore } from '../../../src/store/memory/index.js';

let fence = 0;

export async function openSession(durationMs: number, clock: Clock = systemClock): Promise<Session> {
  return Session.open(new MemoryStore({ clock }), { queue: 'q', name: 'n', durationMs, maxStalls: 1 }, clock);
}

export function lockOn(session: Session, timed?: { durationMs: number; sentAt: Moment }): HeldLock {
  fence += 1;
  const job = { id: `job-${fence}`, token: `token-${fence}`, fence };
  return new HeldLock({ session, job, ...(timed === undefined ? {} : { timed }), onGrown: () => undefined });
}
