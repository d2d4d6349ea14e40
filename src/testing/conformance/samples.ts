// Plain values that tests start from: a job, a session, and the outcomes of a run.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Keep, Outcome } from '../../job/outcome.js';
import type { ClaimedJob, NewJob } from '../../job/record.js';
import type { FinishedState } from '../../job/state.js';
import type { BulkChange, NewSession } from '../../store/contract/index.js';

export function newJob(difference: Partial<NewJob> = {}): NewJob {
  return {
    name: 'work',
    data: '{}',
    opts: '{}',
    priority: 0,
    delayMs: 0,
    lifo: false,
    timestamp: 1_700_000_000_000,
    ...difference,
  };
}

export function newSession(queue: string, durationMs: number, difference: Partial<NewSession>): NewSession {
  const owner = { host: hostname(), pid: process.pid, name: 'worker', instance: 'program-1' };
  return { queue, id: randomUUID(), owner, durationMs, maxStalls: 1, slots: 100, ...difference };
}

/** A retry that lets the attempts count on. */
export function retryFrom(from: FinishedState): Extract<BulkChange, { kind: 'retry' }> {
  return { kind: 'retry', from, resetAttemptsMade: false, resetAttemptsStarted: false };
}

export function completed({ id, token }: ClaimedJob, keep: Keep = {}, value = '"done"'): Outcome {
  return { kind: 'completed', jobId: id, token, value, keep };
}

export function failed({ id, token }: ClaimedJob, keep: Keep = {}): Outcome {
  return { kind: 'failed', jobId: id, token, reason: 'broken', stacktrace: '["at once"]', keep };
}

export function retried({ id, token }: ClaimedJob, delayMs = 0, lifo = false): Outcome {
  return { kind: 'retry', jobId: id, token, reason: 'not yet', stacktrace: '["at first"]', delayMs, lifo };
}

export function delayed({ id, token }: ClaimedJob, delayMs: number): Outcome {
  return { kind: 'delay', jobId: id, token, delayMs };
}

export function released({ id, token }: ClaimedJob): Outcome {
  return { kind: 'release', jobId: id, token };
}

export function returned({ id, token }: ClaimedJob): Outcome {
  return { kind: 'return', jobId: id, token };
}
