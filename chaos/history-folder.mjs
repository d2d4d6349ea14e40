// Where a run writes its history. It stays, and its place is said when the program ends, however that happens (also by Ctrl-C), unless it
// was discarded.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export function historyFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-'));
  let isKept = true;
  process.once('exit', () => {
    if (isKept) console.log(`\nThe history is in ${folder}: npm run chaos -- --check ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  });
  return { folder, discard: () => void (isKept = false) };
}
