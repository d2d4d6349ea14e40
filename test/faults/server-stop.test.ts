// The server stops for 20 s without a word: connections stay open and nobody answers. Locks that last longer go through it; shorter ones
// are lost, and their handlers know it before anybody else could get in.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { Crew, type Member, SERVER_ENGINES, type ServerEngine, serverOf } from '../support/processes/crew.js';
import type { Note } from '../support/processes/diary.js';
import { sleep, until } from '../support/wait/until.js';
import { FaultProxy } from '../support/servers/proxy.js';
import { paced } from '../support/wait/pace.js';

const STOPPED_MS = 20_000;
const SHORT_MS = 5_000;
/** Reaping is the others' business; one job at a time, so that each job of this test has the owner that it is meant for. */
const OPTIONS = { concurrency: 1, stalledInterval: 300 };
/** The default duration. Renewed more often than by default, so that the last renewal was not long before the silence began. */
const LONG = { lockRenewTime: 5_000 };

const noteOf = (member: Member, event: string, id: string) => member.notes(event).filter((note) => note['id'] === id);

async function stopFor20s(engine: ServerEngine): Promise<void> {
  const server = await serverOf(engine);
  const proxy = await FaultProxy.start(server);
  onTestFinished(() => proxy.close());
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-stop-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const gate = join(folder, 'go-on');
  const crew = await Crew.on(server.url);
  const { url: connection } = server;
  const queue = new Queue('work', { connection });
  onTestFinished(() => queue.close());
  queue.on('error', () => undefined);

  /** A job in the hands of this very worker: the others are busy with theirs. */
  const give = async (worker: Member, key: string, data: object): Promise<string> => {
    crew.note('adding', { keys: [key] });
    const { id } = await queue.add('job', { key, ...data });
    crew.note('added', { jobs: [{ id, key }] });
    await until(`${key} to be started`, () => noteOf(worker, 'start', id).length === 1);
    return id;
  };
  const patient = crew.worker({ connection, options: { ...OPTIONS, ...LONG } });
  const through = await give(patient, 'through', { until: gate });
  const obedient = crew.worker({ connection, options: { ...OPTIONS, lockDuration: SHORT_MS } });
  const dropped = await give(obedient, 'dropped', { lastsMs: 2 * STOPPED_MS });
  const stubborn = crew.worker({ connection: proxy.url(connection), options: { ...OPTIONS, lockDuration: SHORT_MS } });
  const stolen = await give(stubborn, 'stolen', { until: gate });
  crew.producer({ connection });
  const workers = crew.worker({ connection, options: { concurrency: 8, ...LONG } });
  await crew.more('finished', 20);

  const stoppedAt = performance.now();
  await server.stop();
  // Told while the server does not say a word, and before it could let anybody else in.
  for (const [worker, id] of [
    [obedient, dropped],
    [stubborn, stolen],
  ] as const) {
    const told = (): Note | undefined => noteOf(worker, 'aborted', id)[0];
    const aborted = await until(`${engine}: the handler of ${id} to be told`, told, SHORT_MS + 1_000);
    expect(aborted).toMatchObject({ held: false, message: expect.stringContaining('lock lost') as string });
  }
  proxy.swallow('both');
  await sleep(STOPPED_MS - (performance.now() - stoppedAt));
  server.resume();

  // The stubborn one is still cut off: somebody else gets its job.
  const heirs = (): Member[] =>
    crew.workers.filter((member) => member !== stubborn && noteOf(member, 'start', stolen).length > 0);
  await until(`${engine}: the job to be recovered`, () => heirs().length === 1, 10_000);
  await crew.more('finished', 20, 15_000);
  proxy.heal();
  writeFileSync(gate, '');
  await until(
    `${engine}: its late result to be refused`,
    () => stubborn.errors().some((error) => error.includes(`Could not settle job ${stolen} as completed`)),
    15_000,
  );
  const { complaints } = await crew.finish();
  const [first] = noteOf(stubborn, 'start', stolen);
  const [second] = noteOf(heirs()[0] as Member, 'start', stolen);
  // The ledger sees that the stubborn handler went on; that was its own decision, and changed nothing.
  expect(complaints).toEqual([`job ${stolen}: two runs at once, ${String(first?.['fence'])} and ${String(second?.['fence'])}`]);
  expect(noteOf(stubborn, 'finished', stolen)).toEqual([]);
  // Its lock outlasted the silence: one run, and nobody was told anything else.
  expect(noteOf(patient, 'finished', through)).toHaveLength(1);
  expect(patient.notes('aborted')).toEqual([]);
  expect(workers.notes('aborted')).toEqual([]);
  console.log(`stop of ${engine}: errors told by each: ${crew.members.map((member) => member.errors().length).join(', ')}`);
  for (const member of crew.members) {
    const errors = member.errors();
    expect(errors.some((error) => error.startsWith('STORE_UNAVAILABLE') || error.startsWith('TIMEOUT'))).toBe(true);
    expect(errors.length, `${engine}, ${member.role}:\n${errors.join('\n')}`).toBeLessThanOrEqual(30);
  }
}

// All engines at once: it is the same 20 s for all of them.
test('a server that stops for 20 s: long locks last, short ones are lost, jobs are recovered, stale results refused', {
  timeout: paced(90_000),
}, async () => {
  await Promise.all(SERVER_ENGINES.map(stopFor20s));
});
