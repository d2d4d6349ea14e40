// A SQLite file that all processes share, on a small disk of its own where one can be had.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from 'holdfast';
import { foreignLockFaults, fullDiskFaults } from '../faults/file.mjs';
import { smallDisk } from '../small-disk.mjs';

export async function onSqlite() {
  const disk = smallDisk();
  const folder = disk ?? mkdtempSync(join(tmpdir(), 'holdfast-chaos-file-'));
  const file = join(folder, 'jobs.db');
  const url = `sqlite:${file}`;
  const store = await openStore(url);
  return {
    remarks: disk === undefined ? ['The disk is not filled: "unshare -Urm" and a tmpfs are not allowed here.'] : [],
    file,
    connectionFor: () => url,
    faults: () => [...foreignLockFaults(file), ...(disk === undefined ? [] : fullDiskFaults(file))],
    store: () => store,
    heal: () => undefined,
    close: async () => {
      await store.close();
      if (disk === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}
