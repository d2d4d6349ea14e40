// Families: reads the links of parents.
import { LINK_STATES, type LinkState } from '../../job/family.js';
import { REPLY_BYTES } from '../budget.js';
import type { ChildrenQuery, ChildrenReply, Link } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

type LinkRow = [queue: string, child: string, state: LinkState, text: string | null, queueNumber: number];

interface LinksRow {
  counts: ChildrenReply['counts'] | null;
  links: LinkRow[];
  /** True if the page was cut at its limit, or at its bytes. */
  more: boolean;
}

export async function children(
  { server }: Engine,
  queue: string,
  job: string,
  { states, after, limit }: ChildrenQuery,
): Promise<ChildrenReply> {
  const [, afterQueue, afterChild] = /^(\d+)\n(.*)$/s.exec(after ?? '') ?? [];
  const { counts, links, more } = await server.call<LinksRow>('children_of', {
    name: queue,
    job,
    states,
    afterQueue,
    afterChild,
    limit: Math.min(limit, 2 ** 31 - 2),
    budget: REPLY_BYTES,
  });
  const none = Object.fromEntries(LINK_STATES.map((state) => [state, 0])) as ChildrenReply['counts'];
  const reply: ChildrenReply = { counts: counts ?? none, links: links.map(toLink) };
  const last = links.at(-1);
  if (more && last !== undefined) reply.next = `${last[4]}\n${last[1]}`;
  return reply;
}

function toLink([queue, id, state, text]: LinkRow): Link {
  return text === null ? { child: { queue, id }, state } : { child: { queue, id }, state, text };
}
