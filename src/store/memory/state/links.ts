// The links of one parent to its children, with a count for each state.
import { type JobRef, LINK_STATES, type LinkState, refKey } from '../../../job/family.js';
import type { ChildrenQuery, ChildrenReply, Link } from '../../contract/index.js';

export class Links {
  readonly counts: Record<LinkState, number> = { pending: 0, processed: 0, failed: 0, ignored: 0 };
  readonly #byChild = new Map<string, Link>();

  get(child: JobRef): Link | undefined {
    return this.#byChild.get(refKey(child));
  }

  set(child: JobRef, state: LinkState, text?: string): void {
    this.#uncount(child);
    const { queue, id } = child;
    this.#byChild.set(refKey(child), { child: { queue, id }, state, ...(text !== undefined && { text }) });
    this.counts[state] += 1;
  }

  delete(child: JobRef): void {
    this.#uncount(child);
    this.#byChild.delete(refKey(child));
  }

  all(): Iterable<Link> {
    return this.#byChild.values();
  }

  page({ states, after, limit }: ChildrenQuery): ChildrenReply {
    const reply: ChildrenReply = { counts: { ...this.counts }, links: [] };
    let started = after === undefined;
    for (const [key, link] of this.#byChild) {
      if (started && states.includes(link.state)) {
        if (reply.links.length === limit) {
          reply.next = refKey(reply.links.at(-1)?.child ?? link.child);
          break;
        }
        reply.links.push({ ...link, child: { ...link.child } });
      }
      started ||= key === after;
    }
    return reply;
  }

  #uncount(child: JobRef): void {
    const known = this.get(child);
    if (known !== undefined) this.counts[known.state] -= 1;
  }
}

export function noLinks(): ChildrenReply {
  return { counts: Object.fromEntries(LINK_STATES.map((state) => [state, 0])) as ChildrenReply['counts'], links: [] };
}
