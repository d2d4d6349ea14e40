// Equal names mean equal ideas: a file below the folder of an engine, or a section of SQL or Lua, that has the name of one in another
// engine holds the same idea. The tables say which. Add a line for a name that becomes shared, or give the file or section another name.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sectionsOf, textsIn } from '../../src/store/sections.js';

const STORE = join(import.meta.dirname, '..', '..', 'src', 'store');
const FOLDERS = {
  memory: ['state'],
  sqlite: ['state', 'driver', 'liveness'],
  postgres: ['state', 'driver', 'liveness'],
  redis: ['state', 'driver', 'liveness'],
};
const TEXTS = ['sqlite/sql', 'postgres/sql', 'redis/lua'];

const FILES: Record<string, string> = {
  callers: 'the last call of every caller and its reply, for repetitions',
  driver: 'the only file that knows the client package',
  engine: 'makes the parts of the store and connects them with each other',
  enter: 'puts a new job into the queue',
  entries: 'the entries of deduplication',
  errors: 'turns errors of the driver into HoldfastErrors',
  fail: 'fails a job for a reason that is not an outcome of its run',
  group: 'one group: its number in line and its limits',
  groups: 'the groups of a queue',
  links: 'the links of parents to their children',
  'minute-counts': 'the finished jobs of each minute',
  options: 'reads and checks the options of the store',
  presence: 'the proof that a process lives, by which the death of its sessions is suspected',
  'queue-state': 'the state of one queue: counters, counts, pause and limits',
  'rate-limit': 'how many claims a queue or group still allows',
  relays: 'delivers the messages between jobs of different queues',
  schedules: 'the schedules, and which of them are owing',
  schema: 'makes and migrates the tables',
  sql: 'loads the SQL and its named parameters',
  'sql-texts': 'the SQL files, which the build replaces by their texts',
  steps: 'the recorded steps of jobs',
};

const SECTIONS: Record<string, string> = {
  acquire: 'grants named locks, or places among their waiters',
  add: 'adds jobs',
  'add-family': 'adds jobs with parents or children',
  claim: 'claims jobs',
  complete: 'completes jobs for their owner',
  completed: 'the values that a completed job gets',
  configure: 'changes the settings of a queue',
  deliver: 'applies messages of other queues',
  extend: 'extends locks of jobs',
  forget: 'forgets events, or an emptied queue',
  'forget-caller': 'deletes a caller',
  'forget-entries': 'deletes entries of deduplication',
  'forget-groups': 'forgets the settings and turns of groups',
  'hand-back': 'moves a job to waiting whose lock ended without an outcome',
  'lapse-places': 'deletes the places of lock waiters that are no longer kept',
  leave: 'what remains to be done when a job leaves a state',
  'let-go': 'releases named locks, and places of waiters',
  'list-active': 'lists active jobs in the order of their claims',
  losses: 'which owner lost a job',
  'named-locks': 'reads who holds named locks',
  'open-session': 'opens a session',
  owned: 'the jobs that a session holds',
  plain: 'whether a job is plain',
  probe: 'starts a suspicion check',
  promote: 'moves delayed jobs to waiting',
  'prune-callers': 'deletes callers that were not used for long',
  renew: 'renews sessions',
  schedule: 'changes schedules and their next jobs',
  'select-active': 'active jobs, the oldest first',
  settle: 'settles jobs, and may claim the next ones',
  status: 'reads the counts and settings of a queue',
  suspect: 'suspects the sessions of a dead process',
  sweep: 'ends expired sessions and locks',
  'trim-events': 'trims the log of events',
};

/** Returns the names that at least two engines have. Some engines write `-` and others `_`. */
function shared(engines: string[][]): string[] {
  const counts = new Map<string, number>();
  for (const names of engines) {
    for (const name of new Set(names.map((one) => one.replaceAll('_', '-')))) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts.keys()].filter((name) => counts.get(name) !== 1).sort();
}

test('describes each file name that folders of two engines share', () => {
  const engines = Object.entries(FOLDERS).map(([engine, folders]) =>
    folders.flatMap((folder) => readdirSync(join(STORE, engine, folder)).map((file) => file.replace(/\.ts$/, ''))),
  );
  expect(Object.keys(FILES).sort()).toEqual(shared(engines));
});

test('describes each section name that two engines share', () => {
  const engines = TEXTS.map((folder) => {
    const { operations, parts } = sectionsOf(textsIn(join(STORE, folder)));
    return [...operations.keys(), ...parts.keys()];
  });
  expect(Object.keys(SECTIONS).sort()).toEqual(shared(engines));
});
