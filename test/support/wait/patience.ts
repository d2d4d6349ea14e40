// A test, and what waits inside it for a moment, has as much time as this machine needs for it at the moment.
import { expect, vi } from 'vitest';
import { paced } from './pace.js';

const PATIENCE_MS = 45_000;
/** For waiting without a limit of its own: vitest gives up after a second, which a busy machine may take for anything. */
const MOMENT_MS = 20_000;

vi.setConfig({ testTimeout: paced(PATIENCE_MS), hookTimeout: paced(PATIENCE_MS) });

type Options = number | { timeout?: number; interval?: number } | undefined;

function patient(options: Options): { timeout: number; interval?: number } {
  const { timeout = MOMENT_MS, ...rest } = typeof options === 'number' ? { timeout: options } : (options ?? {});
  return { ...rest, timeout: paced(timeout) };
}

const { waitFor, waitUntil } = vi;
const { poll } = expect;
vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
expect.poll = (read, options) => poll(read, { ...options, ...patient(options) });
