// Sends dead letters back (`send` in lua/dead-letters.lua). A letter arrives by a message: see state/relays.ts.
import type { Selection } from '../contract/index.js';
import type { Runner } from './driver/runner.js';
import { eachBatch, runBatch } from './select.js';
import type { Engine } from './driver/engine.js';

/** Sends letters back by their ids. Returns the reply of the script. */
export function send(run: Runner, queue: string, jobIds: string[], to: string): Promise<unknown> {
  return run('send', queue, [to, 'i', ...jobIds]);
}

/** Returns the ids of the letters that were sent back. */
export function sendSelected(engine: Engine, queue: string, selection: Selection, to: string): Promise<string[]> {
  return eachBatch(selection, (batch) => runBatch(engine, queue, 'send', [to, 'l', ...batch]));
}
