// Time namespaces of Linux (unshare --time, some sandboxes and checkpoints): processes of one boot with different monotonic clocks.
import fs from 'node:fs';
import { HoldfastError } from '../../../errors.js';

const OFFSETS = '/proc/self/timens_offsets';
const NAMESPACES = ['/proc/self/ns/time', '/proc/self/ns/time_for_children'] as const;

/** Returns how far the monotonic clock of this process is ahead of the host's, in ms. 0 if the system has no such namespaces. */
export function readNamespaceMs(): number {
  const text = read(OFFSETS);
  if (text === undefined) return 0;
  // The file describes the namespace of child processes.
  const [own, ofChildren] = NAMESPACES.map((link) => read(link, fs.readlinkSync));
  if (own !== ofChildren) throw wrongNamespace();
  const [, seconds, nanoseconds] = /^monotonic\s+(-?\d+)\s+(-?\d+)/m.exec(text) ?? [];
  return Number(seconds ?? 0) * 1000 + Number(nanoseconds ?? 0) / 1_000_000;
}

/** The store refuses to open, because two clocks on one file would allow a second owner before the first one stops. */
export function wrongNamespace(): HoldfastError {
  return new HoldfastError(
    'STORE_UNSUPPORTED',
    'This process runs in a time namespace, and the SQLite store was last used by processes whose clock cannot be compared with that of this one. ' +
      'End all programs that use the store and open it once from outside of the namespace, or use a server.',
    { store: 'sqlite' },
  );
}

function read(file: string, by: (file: string, encoding: 'utf8') => string = fs.readFileSync): string | undefined {
  try {
    return by(file, 'utf8');
  } catch {
    // An older kernel, another system, or a sandbox that hides the file.
    return undefined;
  }
}
