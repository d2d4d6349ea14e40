// Leadership under faults: the leader is killed, frozen or cut off from its store, round after round. HOLDFAST_ROUNDS says how many (9
// unless said otherwise).
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type BetterSqlite3 from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { freeze } from '../support/processes/freeze.js';
import type { Moment } from '../support/wait/moments.js';
import { type ProcessPlan, WorkerProcess } from '../support/processes/worker-process.js';
import { type Engine, LOCK_ENGINES, newScene, type Scene } from '../support/scenes/scene.js';
import { seeded } from '../support/run/random.js';
import { FaultProxy } from '../support/servers/proxy.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const Database = createRequire(import.meta.url)('better-sqlite3') as typeof BetterSqlite3;

const ROUNDS = Number(process.env['HOLDFAST_ROUNDS'] ?? 9);
const ELECTION = { leaderTimeout: paced(1500), heartbeatInterval: paced(500), crashGraceMs: 300 };
const CANDIDATES = 3;

type Fault = 'kill' | 'freeze' | 'cut';

interface Candidate {
  process: WorkerProcess;
  proxy: FaultProxy | undefined;
}

interface Try {
  term: number;
  pid: number;
  accepted: number;
}

/** What leaders write to: it takes a write whose term is not smaller than the greatest that it has seen. */
function newResource({ folder }: Scene): { file: string; tries(): Try[] } {
  const file = join(folder, 'resource.db');
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.exec(`CREATE TABLE resource (term INTEGER, writes INTEGER); INSERT INTO resource VALUES (0, 0);
           CREATE TABLE tries (id INTEGER PRIMARY KEY, term INTEGER, pid INTEGER, accepted INTEGER)`);
  onTestFinished(() => void db.close());
  return { file, tries: () => db.prepare('SELECT term, pid, accepted FROM tries ORDER BY id').all() as Try[] };
}

async function stand({ url }: Scene, resource: string): Promise<Candidate> {
  const overNetwork = !url.startsWith('sqlite:');
  const proxy = overNetwork ? await FaultProxy.start({ port: Number(new URL(url).port) }) : undefined;
  if (proxy !== undefined) onTestFinished(() => proxy.close());
  const plan = { queue: 'work', connection: proxy?.url(url) ?? url, options: ELECTION, resource };
  return { proxy, process: new WorkerProcess(plan as ProcessPlan, 'leader.mjs') };
}

/** Returns a stopwatch that counts from the fault on. */
async function strike({ process, proxy }: Candidate, fault: Fault, scene: Scene, resource: string): Promise<() => number> {
  if (fault === 'freeze') await freeze(process, scene, resource);
  const took = stopwatch();
  if (fault === 'kill') process.kill('SIGKILL');
  if (fault === 'cut') proxy?.swallow('both');
  return took;
}

const lastWord = ({ process }: Candidate): string | undefined =>
  process.moments.findLast(({ event }) => event === 'leader' || event === 'follower')?.event;

const termIn = (moment: Moment): number => (moment['args'] as [number])[0];

describe.each(oneInThisRun(LOCK_ENGINES))('a leader that is killed, frozen or cut off, on %s', (engine: Engine) => {
  const faults: Fault[] = engine === 'sqlite' ? ['kill', 'freeze'] : ['kill', 'freeze', 'cut'];

  test(
    `${ROUNDS} rounds: one leader a term, no write of a former leader after its successor's, a new one in time`,
    async () => {
      const scene = await newScene(engine);
      const resource = newResource(scene);
      const random = seeded(7);
      let candidates = await Promise.all(Array.from({ length: CANDIDATES }, () => stand(scene, resource.file)));
      const all = [...candidates];
      const tookMs: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const leader = await until('one to lead', async () => candidates.find((each) => lastWord(each) === 'leader'));
        await Promise.all(candidates.map(({ process }) => process.moment('ready')));
        await new Promise((resolve) => setTimeout(resolve, random() * 800));
        const fault = faults[Math.floor(random() * faults.length)] as Fault;
        const others = candidates.filter((each) => each !== leader);
        const term = Math.max(...candidates.flatMap(({ process }) => process.all('leader').map(termIn)));
        const took = await strike(leader, fault, scene, resource.file);
        await until(`another to lead after ${fault}`, async () =>
          others.flatMap(({ process }) => process.all('leader', (moment) => termIn(moment) > term)).at(0),
        );
        tookMs.push(took());
        if (fault === 'kill') {
          candidates = [...others, await stand(scene, resource.file)];
          all.push(candidates.at(-1) as Candidate);
        } else {
          leader.process.kill('SIGCONT');
          leader.proxy?.heal();
          await until(`the former leader to know it after ${fault}`, async () => lastWord(leader) === 'follower');
        }
      }
      const terms = all.flatMap(({ process }) => process.all('leader').map(termIn));
      const tries = resource.tries();
      const refused = tries.filter(({ accepted }) => accepted === 0).length;
      const sorted = tookMs.toSorted((a, b) => a - b);
      console.log(
        `${engine}: ${ROUNDS} rounds (${faults.join(', ')}): a new leader after ${sorted[ROUNDS >> 1]?.toFixed(0)} ms (median), ` +
          `${sorted.at(-1)?.toFixed(0)} ms (most); ${tries.length} writes of leaders, ${refused} of former leaders refused by the term`,
      );
      expect(new Set(terms).size).toBe(terms.length);
      expect(terms.length).toBeGreaterThan(ROUNDS);
      expect(sorted.at(-1)).toBeLessThan(ELECTION.leaderTimeout + ELECTION.heartbeatInterval);
      // One process for each term, and in the order of the terms.
      const ownerOf = new Map(tries.map(({ term, pid }) => [term, pid]));
      for (const { term, pid } of tries) expect(ownerOf.get(term)).toBe(pid);
      const accepted = tries.filter((each) => each.accepted === 1).map(({ term }) => term);
      expect(accepted).toEqual(accepted.toSorted((a, b) => a - b));
      // A leader looks before it writes: hardly ever is one frozen in between.
      expect(refused).toBeLessThanOrEqual(ROUNDS);
    },
    60_000 + ROUNDS * 6000,
  );

  test('(N) a former leader that writes without reading isLeader is refused by the term alone', async () => {
    const scene = await newScene(engine);
    const resource = newResource(scene);
    const first = await stand(scene, resource.file);
    const { at } = await first.process.moment('work');
    const second = await stand(scene, resource.file);
    await second.process.moment('follower');
    await freeze(first.process, scene, resource.file);
    await second.process.moment('work', (moment) => moment.at > at);
    const db = new Database(resource.file);
    const term = termIn(first.process.all('leader')[0] as Moment);
    expect(db.prepare('UPDATE resource SET writes = writes + 1 WHERE term <= ?').run(term).changes).toBe(0);
    expect(db.prepare('UPDATE resource SET writes = writes + 1').run().changes).toBe(1);
    db.close();
    first.process.kill('SIGCONT');
  });
});
