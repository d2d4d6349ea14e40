// Whether the stack of this thread may be taken from the lock thread. Pausing a thread that a developer debugs would disturb both.
import { isMainThread } from 'node:worker_threads';
import { inspectorOf } from './stack-capture.js';

const INSPECT_FLAG = /(^|\s)--inspect(-brk|-wait)?(=|\s|$)/;

/** Returns why the stack of this thread can never be taken; undefined if it can. */
export function noStackReason(): string | undefined {
  const { bun, deno } = process.versions as Partial<Record<string, string>>;
  if (bun !== undefined || deno !== undefined) return 'this runtime has no inspector for another thread';
  if (!isMainThread) return 'the worker does not run in the main thread of its process';
  return undefined;
}

/** Returns a function that says whether a debugger is attached, or may attach at any time. */
export function debuggedNow(): () => boolean {
  const flags = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  if (INSPECT_FLAG.test(flags)) return () => true;
  // Other runtimes have an inspector that cannot be asked.
  const inspector = noStackReason() === undefined ? inspectorOf() : undefined;
  return () => inspector?.url() !== undefined;
}
