// Fails a test file that leaves something running: a thread, a child process, a timer, a socket, a watched file. What is
// left gets a moment to end by itself, because closing takes a turn of the loop or two.
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { afterAll } from 'vitest';
import { paced } from '../wait/pace.js';

/** The background of a forced close may take seconds on a busy machine. */
const PATIENCE_MS = Number(process.env['HOLDFAST_LEAK_PATIENCE_MS'] ?? paced(15_000));
// Work of the moment, not something left open: vitest itself reads files and talks to its parent.
const TRANSIENT = new Set(['FSReqCallback', 'FSReqPromise', 'Immediate', 'TickObject', 'WriteWrap', 'CloseReq', 'ShutdownWrap']);

const threads = new Map<Worker, string>();
const children = new Map<ChildProcess, string>();
// Threads that were unref'ed do not show among the active resources, so both are noted when they are made.
subscribe('worker_threads', (message) => threads.set((message as { worker: Worker }).worker, madeAt()));
subscribe('child_process', (message) => children.set((message as { process: ChildProcess }).process, madeAt()));

const before = activeResources();

afterAll(async () => {
  const deadline = performance.now() + PATIENCE_MS;
  let left = whatIsLeft();
  while (left.length > 0 && performance.now() < deadline) {
    await sleep(20, undefined, { ref: false });
    left = whatIsLeft();
  }
  if (left.length === 0) return;
  for (const thread of threads.keys()) void thread.terminate();
  for (const child of children.keys()) child.kill('SIGKILL');
  throw new Error(`This test file left something running: close it.\n${left.join('\n')}`);
}, 2 * PATIENCE_MS);

function whatIsLeft(): string[] {
  const left: string[] = [];
  for (const [thread, made] of threads) if (thread.threadId !== -1) left.push(`a thread, made ${made}`);
  for (const [child, made] of children) {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      left.push(`a child process (${child.spawnargs.join(' ')}), made ${made}`);
    }
  }
  for (const [type, count] of activeResources()) {
    const more = count - (before.get(type) ?? 0);
    if (more > 0 && !TRANSIENT.has(type)) left.push(`${more} × ${type} that keeps the event loop alive`);
  }
  return left;
}

function activeResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const type of process.getActiveResourcesInfo()) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}

function madeAt(): string {
  const frames = new Error('made').stack?.split('\n').slice(1) ?? [];
  const ours = frames.filter(
    (frame) => !frame.includes('node:') && !frame.includes('/leaks.ts') && !frame.includes('/node_modules/'),
  );
  return ours.slice(0, 3).join('\n').trim();
}
