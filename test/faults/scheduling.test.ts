// The recipe of docs/scheduling.md, taken from that page, while its leaders are killed and frozen: every time of the schedule becomes one job.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compilePrograms } from '../../scripts/compile-programs.mjs';
import { blocksOf, read } from '../docs/markdown.js';
import { freeze } from '../support/acceptance-freeze.js';
import { eventually } from '../support/acceptance-moments.js';
import { type ProcessPlan, WorkerProcess } from '../support/acceptance-process.js';
import { type Engine, LOCK_ENGINES, newScene, type Scene, work } from '../support/acceptance-scene.js';
import { paced } from '../support/pace.js';

const EVERY_MS = 250;
const LEADER_TIMEOUT = paced(1500);
const ELECTION = { leaderTimeout: LEADER_TIMEOUT, heartbeatInterval: Math.floor(LEADER_TIMEOUT / 3), crashGraceMs: 500 };
const DRIVER = `
const { queue: name, connection, options } = JSON.parse(process.argv[2] ?? '');
const queue = new Queue(name, { connection });
const leader = new Leader(name, { connection, ...options });
leader.on('error', () => undefined);
leader.on('leader', () => console.log(JSON.stringify({ event: 'leader', at: Number(process.hrtime.bigint()) / 1e6 })));
await schedule({ queue, leader, name: 'tick', times: every(${EVERY_MS}), aheadMs: ${2 * LEADER_TIMEOUT}, catchUpMs: 60_000 });
`;

const [recipe = ''] = blocksOf(read('docs/scheduling.md')).map(({ code }) => code);
const ID = /jobId: `[^`]*`, /;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-scheduling-'));
  mkdirSync(join(folder, 'src'));
  writeFileSync(join(folder, 'src', 'recipe.ts'), recipe + DRIVER);
  writeFileSync(join(folder, 'src', 'without-ids.ts'), recipe.replace(ID, '') + DRIVER);
  const messages = compilePrograms(folder);
  if (messages.length > 0) throw new Error(messages.join('\n'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Candidate {
  process: WorkerProcess;
  terms(): number;
}

/** Runs the recipe in two processes, kills the first leader, freezes the second one past its term, and returns how many jobs each time got. */
async function jobsOfEachTime(engine: Engine, program: string): Promise<Map<number, number>> {
  const scene = await newScene(engine);
  work(scene, async () => undefined, { concurrency: 10 });
  const plan = { queue: 'work', connection: scene.url, options: ELECTION, program: join(folder, 'out', program) } as ProcessPlan;
  const start = (): Candidate => {
    const process = new WorkerProcess(plan, 'program.mjs');
    return { process, terms: () => process.all('leader').length };
  };
  const [first, second] = [start(), start()];
  const led = await eventually('a leader', async () => [first, second].find(({ terms }) => terms() > 0));
  await plannedUntil(scene, Date.now());
  led.process.kill('SIGKILL');

  const heir = led === first ? second : first;
  await eventually('the other process to lead', async () => heir.terms() > 0);
  await plannedUntil(scene, Date.now() + LEADER_TIMEOUT);
  const third = start();
  await freeze(heir.process, scene);
  await eventually('a new process to lead', async () => third.terms() > 0);
  heir.process.thaw();
  await plannedUntil(scene, Date.now() + 2 * LEADER_TIMEOUT - EVERY_MS);
  third.process.kill('SIGKILL');
  // The process that was frozen stands for election again, and plans once more.
  await eventually('the process that was frozen to lead again', async () => heir.terms() > 1);
  await plannedUntil(scene, Date.now() + LEADER_TIMEOUT);
  heir.process.kill('SIGKILL');
  await heir.process.exited;

  const counts = new Map<number, number>();
  for (const time of await timesOf(scene)) counts.set(time, (counts.get(time) ?? 0) + 1);
  return counts;
}

/** Reads the states in the order in which a job passes them, so that a job which moves meanwhile is not missed. */
async function timesOf({ queue }: Scene): Promise<number[]> {
  const found = new Map<string, number>();
  for (const state of ['delayed', 'waiting', 'active', 'completed', 'failed'] as const) {
    for (const { id, data } of await queue.getJobs([state])) found.set(id, (data as { time: number }).time);
  }
  return [...found.values()];
}

async function plannedUntil(scene: Scene, time: number): Promise<void> {
  await eventually(`jobs up to ${time}`, async () => (await timesOf(scene)).some((planned) => planned >= time - EVERY_MS));
}

describe.each(LOCK_ENGINES)('the scheduling recipe on %s, with leaders that are killed and frozen', (engine) => {
  test('adds one job for each time, and leaves none out', async () => {
    const counts = await jobsOfEachTime(engine, 'recipe.js');
    const times = [...counts.keys()].toSorted((a, b) => a - b);
    const [from = 0, to = 0] = [times[0], times.at(-1)];
    expect(times).toEqual(Array.from({ length: (to - from) / EVERY_MS + 1 }, (_, index) => from + index * EVERY_MS));
    expect([...counts.values()].filter((count) => count !== 1)).toEqual([]);
    expect(times.length).toBeGreaterThan(60_000 / EVERY_MS);
  }, 90_000);
});

test('the recipe without job ids adds times twice after a leader was killed', async () => {
  expect(recipe).toMatch(ID);
  const counts = await jobsOfEachTime('sqlite', 'without-ids.js');
  expect([...counts.values()].some((count) => count > 1)).toBe(true);
}, 90_000);
