// Reads the links of a parent to its children (`children` in lua/families.lua).
import type { ChildrenQuery, ChildrenReply, Link, LinkState } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

const LETTERS: Record<LinkState, string> = { pending: 'p', processed: 'd', failed: 'f', ignored: 'i' };
const STATES: Record<string, LinkState> = { p: 'pending', d: 'processed', f: 'failed', i: 'ignored' };
const TEXTS_OF_LINK = 3;

export async function children({ run }: Engine, queue: string, jobId: string, query: ChildrenQuery): Promise<ChildrenReply> {
  type Raw = [counts: number[], next: string, links: string[]];
  const states = query.states.map((state) => LETTERS[state]).join('');
  const links: Link[] = [];
  for (let after = query.after; ; ) {
    const args = [jobId, after === undefined ? '' : `=${after}`, query.limit - links.length, states];
    const [[pending = 0, processed = 0, failed = 0, ignored = 0], next, found] = (await run('children', queue, args)) as Raw;
    for (let at = 0; at < found.length; at += TEXTS_OF_LINK) links.push(readLink(found, at));
    const reply: ChildrenReply = { counts: { pending, processed, failed, ignored }, links };
    if (next === '') return reply;
    // A page without a link has looked at links of other states only.
    if (links.length >= query.limit || found.length > 0) return { ...reply, next };
    after = next;
  }
}

function readLink(texts: string[], at: number): Link {
  const [child = '', letter = '', text = ''] = texts.slice(at, at + TEXTS_OF_LINK);
  const end = child.indexOf('\n');
  const state = STATES[letter] as LinkState;
  return { child: { queue: child.slice(0, end), id: child.slice(end + 1) }, state, ...(state !== 'pending' && { text }) };
}
