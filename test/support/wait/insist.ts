// Repeats a call as callers of a store do: the same call, until the store replies.
import { isRetryable } from '../../../src/errors.js';
import { paced } from './pace.js';
import { sleep } from './until.js';

const PAUSE_MS = 5;
const PATIENCE_MS = 20_000;

/** Rejects with an error that no repetition heals, or when the store has not replied for long. */
export async function insist<T>(call: () => Promise<T>, onFailure: (error: unknown) => void = () => undefined): Promise<T> {
  const deadline = performance.now() + paced(PATIENCE_MS);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isRetryable(error) || performance.now() > deadline) throw error;
      onFailure(error);
      await sleep(PAUSE_MS);
    }
  }
}
