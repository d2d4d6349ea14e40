import { statSync } from 'node:fs';

export async function sqliteSize({ file }) {
  const sizeOf = (path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return { store: sizeOf(file), wal: sizeOf(`${file}-wal`) };
}
