// The modes of a SQLite store's files, whatever the umask of the process.
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import { type Connection, openStore } from '../../../src/store/open.js';
import { Worker } from '../../../src/worker/worker.js';
import { afterwards, newFile, newFolder } from './support.js';

function modesOf(file: string): Record<string, string> {
  const folder = path.dirname(file);
  const names = fs.readdirSync(folder).toSorted();
  return Object.fromEntries(names.map((name) => [name, (fs.statSync(path.join(folder, name)).mode & 0o777).toString(8)]));
}

/** Runs a job, so that everything that a store makes is there, and returns the modes meanwhile. */
async function modesWhileWorking(file: string, connection: Connection): Promise<Record<string, string>> {
  const queue = new Queue('q', { connection });
  afterwards(() => queue.close());
  const worker = new Worker('q', () => 'done', { connection });
  afterwards(() => worker.close());
  const completed = new Promise((resolve) => worker.once('completed', resolve));
  await queue.add('job', {});
  await completed;
  return modesOf(file);
}

function withUmask(mask: number): void {
  const before = process.umask(mask);
  afterwards(() => process.umask(before));
}

describe('fileMode', () => {
  test.each([
    ['as an option', 0o022, (file: string) => ({ path: file, fileMode: 0o600 }), '600'],
    ['as digits in the URL', 0o022, (file: string) => `sqlite:${file}?fileMode=600`, '600'],
    ['beyond what the umask leaves', 0o077, (file: string) => ({ path: file, fileMode: '660' }), '660'],
  ])('is the mode of a new database and of the files beside it: %s', async (_, mask, connection, mode) => {
    withUmask(mask);
    const file = newFile();
    expect(await modesWhileWorking(file, connection(file))).toEqual({
      'jobs.db': mode,
      'jobs.db-wal': mode,
      'jobs.db-shm': mode,
      'jobs.db-presence': '700',
    });
  });

  test('is applied to existing files, while another store has them open', async () => {
    withUmask(0o022);
    const file = newFile();
    const first = await openStore(`sqlite:${file}?synchronous=normal`);
    afterwards(() => first.close());
    expect(modesOf(file)).toMatchObject({ 'jobs.db': '644', 'jobs.db-wal': '644' });
    const modes = await modesWhileWorking(file, { path: file, fileMode: 0o600 });
    expect(modes).toMatchObject({ 'jobs.db': '600', 'jobs.db-wal': '600', 'jobs.db-shm': '600' });
    expect((await first.status('q')).counts.completed).toBe(1);
  });

  test('names a folder that does not exist, and makes nothing', async () => {
    const folder = path.join(newFolder(), 'missing');
    const opening = openStore({ path: path.join(folder, 'jobs.db'), fileMode: 0o600 });
    await expect(opening).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/folder .*missing/),
    });
    expect(fs.existsSync(folder)).toBe(false);
  });

  test.each([600, 0o400, -1, 1.5, 0o1600, '9', 'rw', '', null, {}])('is refused when it is %j', async (fileMode) => {
    await expect(openStore({ path: newFile(), fileMode: fileMode as number })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: 'fileMode',
    });
  });
});
