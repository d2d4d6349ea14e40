// One of two servers, each of which is a memory store with some of the queues: see ../split.
import { MAIL } from '../split/mail.mjs';
import { scriptsOf, withMail } from '../split/scripts.mjs';
import { MemoryEngine } from './memory.mjs';

export class SplitEngine extends MemoryEngine {
  /** A defect changes what the mail has changed before. */
  static bend(modules = {}) {
    const both = (file) => (exports, realm) => {
      const first = MAIL[file]?.(exports, realm) ?? {};
      return { ...first, ...modules[file]?.({ ...exports, ...first }, realm) };
    };
    return Object.fromEntries([...new Set([...Object.keys(MAIL), ...Object.keys(modules)])].map((file) => [file, both(file)]));
  }

  hinting(books, hints) {
    const hinted = super.hinting(books, hints);
    const right = new Proxy(hinted, { get: (_, verb) => hinted[verb] ?? this.store[verb].bind(this.store) });
    return { ...hinted, ...withMail(right, this.memory), ...scriptsOf(this.realm, this.memory) };
  }
}
