// What happens to a SQLite file and the disk that it is on.
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { ABOUT_A_LOCK } from '../lock-times.mjs';
import { within } from '../nemesis.mjs';

export function foreignLockFaults(file) {
  let foreign;
  return [
    {
      kind: 'another program locks the file',
      weight: 6,
      target: () => 'file',
      lasts: within(ABOUT_A_LOCK),
      strike: () => {
        foreign = new Database(file, { timeout: 100 });
        try {
          foreign.exec('BEGIN IMMEDIATE');
        } catch (error) {
          // Somebody was writing all the while: it is as good as locked.
          if (error.code !== 'SQLITE_BUSY') throw error;
        }
      },
      end: () => foreign.close(),
    },
  ];
}

/** Only for a disk of our own. */
export function fullDiskFaults(file) {
  const ballast = join(dirname(file), 'ballast');
  return [
    {
      kind: 'fill the disk',
      weight: 6,
      target: () => 'disk',
      lasts: within(ABOUT_A_LOCK),
      strike: () => fill(ballast),
      end: () => rmSync(ballast, { force: true }),
    },
  ];
}

function fill(path) {
  const descriptor = openSync(path, 'w');
  try {
    for (let size = 1 << 20; size >= 512; ) {
      try {
        writeSync(descriptor, Buffer.alloc(size));
      } catch (error) {
        if (error.code !== 'ENOSPC') throw error;
        size /= 2;
      }
    }
  } finally {
    closeSync(descriptor);
  }
}
