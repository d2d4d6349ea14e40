// A job and a session that tests of one store start from.
import type { NewJob } from '../../src/job/record.js';
import type { NewSession } from '../../src/store/contract/index.js';

export function newJob(job: Partial<NewJob> = {}): NewJob {
  return { name: 'test', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0, ...job };
}

export function newSession(session: Partial<NewSession> = {}): NewSession {
  return {
    queue: 'q',
    id: 's',
    owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
    durationMs: 60_000,
    maxStalls: 1,
    slots: 1,
    ...session,
  };
}
