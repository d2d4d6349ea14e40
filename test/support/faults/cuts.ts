// Cuts connections through a proxy, one after the other, at random places: in the middle of a request, so that it never arrives, after
// the server did the work and before its reply, in the middle of a reply, or at any moment.
import { sleep } from '../wait/until.js';
import { paced } from '../wait/pace.js';
import type { FaultProxy } from '../servers/proxy.js';

const KINDS = ['request', 'lost reply', 'reply', 'now'] as const;
/** Where in a request or in a reply, hello included. */
const MOST_BYTES = 600;
/** How long a fault waits for somebody to strike, and how long it is quiet after it: a call that is repeated must get through at times. */
const PATIENCE_MS = 150;
const QUIET_MS = paced(150);

export type Cuts = Record<(typeof KINDS)[number], number>;

/** Goes on until `enough`; answers how many cuts there were of each kind. */
export async function cutAtRandom(proxy: FaultProxy, random: () => number, enough: () => boolean): Promise<Cuts> {
  const cuts: Cuts = { request: 0, 'lost reply': 0, reply: 0, now: 0 };
  const struck = (): number => proxy.counts.cut + proxy.counts.dropped;
  while (!enough()) {
    const kind = KINDS[Math.floor(random() * KINDS.length)] ?? 'now';
    const bytes = 1 + Math.floor(random() * MOST_BYTES);
    const way = random() < 0.7 ? 'reset' : 'end';
    const before = struck();
    if (kind === 'lost reply') proxy.dropReplies();
    else if (kind === 'now') proxy.cut(way);
    else proxy.cutAfter({ bytes, direction: kind === 'request' ? 'requests' : 'replies', way, times: 1 });
    for (const until = performance.now() + PATIENCE_MS; struck() === before && performance.now() < until; ) await sleep(3);
    cuts[kind] += struck() - before;
    proxy.heal();
    await sleep(random() * QUIET_MS);
  }
  return cuts;
}
