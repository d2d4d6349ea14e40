// Becomes dist/background/start-thread.mjs, which each ESM entry imports: starts the lock thread in a form that bundlers know. webpack makes a
// chunk of the literal below, and knows Worker only from this spelling of the module.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
// oxlint-disable-next-line unicorn/prefer-node-protocol
import { Worker } from 'worker_threads';
import { setEsmThread } from './thread-file.js';

setEsmThread({
  // Undefined in bundles that are CommonJS.
  here: import.meta.url,
  start(options) {
    if (typeof __webpack_require__ !== 'function' && !isThere()) return undefined;
    return new Worker(new URL('./thread-entry.js', import.meta.url), options);
  },
});

/** Other bundlers leave the literal as it is: then the file must lie beside the bundle. */
function isThere() {
  return import.meta.url !== undefined && existsSync(join(dirname(fileURLToPath(import.meta.url)), 'thread-entry.js'));
}
