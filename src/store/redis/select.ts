// Selects jobs by list and age, in batches that do not block Redis (`choose` in lua/change.lua).
import type { ListName, Selection } from '../contract/index.js';
import type { Argument } from './driver/driver.js';
import type { ScriptName } from './driver/scripts.js';
import { LETTER } from './record.js';
import type { Engine } from './driver/engine.js';

/** Jobs that one script of a selection changes at most. */
const AT_ONCE = 150;

type Batch = [list: string, age: Argument, limit: number, position: number];

/**
 * Calls `work` for one batch after the other and one list after the other, until the limit is reached. It skips active jobs, because they
 * are locked, unless `withActive` is true. Returns the ids that `work` returned.
 */
export async function eachBatch(
  { lists, olderThanMs, limit }: Selection,
  work: (batch: Batch) => Promise<unknown>,
  withActive = false,
): Promise<string[]> {
  const begun = performance.now();
  const all: string[] = [];
  for (const list of new Set(lists)) {
    if (list === 'active' && !withActive) continue;
    for (let position = 0; position >= 0 && all.length < limit; ) {
      // The age counts from the first batch on: otherwise newer jobs would become old enough while the batches run.
      const age = olderThanMs === undefined ? '' : Math.ceil(olderThanMs + performance.now() - begun);
      const batch: Batch = [letterOf(list), age, Math.min(limit - all.length, AT_ONCE), position];
      const [ids, next] = (await work(batch)) as [string[], number];
      for (const id of ids) all.push(id);
      position = next;
    }
  }
  return all;
}

/** Runs one batch, and delivers the messages that it has sent. */
export async function runBatch({ run, relays }: Engine, queue: string, name: ScriptName, args: Argument[]): Promise<unknown> {
  const reply = (await run(name, queue, args)) as [ids: string[], next: number, sentTo?: string[]];
  if (reply[2] !== undefined) await relays.after(queue, reply[2]);
  return reply;
}

/** The letter of a list in the arguments of `choose` in lua/change.lua; only `cancel` there accepts `a`. */
function letterOf(list: ListName): string {
  if (list === 'waiting-children') return 'k';
  return list === 'prioritized' ? 'p' : LETTER[list];
}
