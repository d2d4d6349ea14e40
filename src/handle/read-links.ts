// Reads the links of a parent, page by page.
import type { LinkState } from '../job/family.js';
import type { Link, Store } from '../store/contract/index.js';

/** Links that are read in one call. */
const READ_AT_ONCE = 500;

/** Reads all links in these states, or about the first `most`. */
export async function readLinks(
  store: Store,
  queue: string,
  jobId: string,
  states: LinkState[],
  most = Number.POSITIVE_INFINITY,
): Promise<Link[]> {
  const links: Link[] = [];
  let after: string | undefined;
  do {
    const limit = Math.min(READ_AT_ONCE, most - links.length);
    const reply = await store.children(queue, jobId, { states, limit, ...(after !== undefined && { after }) });
    links.push(...reply.links);
    after = reply.next;
  } while (after !== undefined && links.length < most);
  return links;
}
