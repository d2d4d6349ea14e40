// Shows that the linter really holds the order of the rooms: each line below is linted in a copy of the configuration.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

const FORBIDDEN: [file: string, code: string, rule: string][] = [
  ['src/queue/a.ts', "import '../worker/worker.js';", 'rooms(imports)'],
  ['src/queue/b.ts', "import '../maintenance/sweeper.js';", 'rooms(imports)'],
  ['src/worker/a.ts', "import '../queue/queue.js';", 'rooms(imports)'],
  ['src/worker/b.ts', "import '../maintenance/sweeper.js';", 'rooms(imports)'],
  ['src/worker/c.ts', "import '../store/sqlite/index.js';", 'rooms(imports)'],
  ['src/maintenance/a.ts', "import '../queue/queue.js';", 'rooms(imports)'],
  ['src/maintenance/b.ts', "import '../worker/worker.js';", 'rooms(imports)'],
  ['src/maintenance/c.ts', "import '../renewal/renewal-loop.js';", 'rooms(imports)'],
  ['src/renewal/a.ts', "import '../maintenance/sweeper.js';", 'rooms(imports)'],
  ['src/renewal/b.ts', "import '../store/open.js';", 'rooms(imports)'],
  ['src/session/a.ts', "import '../renewal/renewal-loop.js';", 'rooms(imports)'],
  ['src/session/b.ts', "import '../background/renewers.js';", 'rooms(imports)'],
  ['src/background/a.ts', "import '../worker/worker.js';", 'rooms(imports)'],
  ['src/background/b.ts', "import '../handle/job.js';", 'rooms(imports)'],
  ['src/store/client/a.ts', "import '../open.js';", 'rooms(imports)'],
  ['src/store/c.ts', "import './client/read-on.js';", 'rooms(imports)'],
  ['src/lock/a.ts', "import '../worker/worker.js';", 'rooms(imports)'],
  ['src/lock/b.ts', "import '../handle/job.js';", 'rooms(imports)'],
  ['src/handle/a.ts', "import '../queue/queue.js';", 'rooms(imports)'],
  ['src/handle/b.ts', "import '../store/open.js';", 'rooms(imports)'],
  ['src/events/a.ts', "import '../worker/worker.js';", 'rooms(imports)'],
  ['src/job/a.ts', "import '../store/contract/index.js';", 'rooms(imports)'],
  ['src/runtime/a.ts', "import '../job/state.js';", 'rooms(imports)'],
  ['src/errors.ts', "import './runtime/clock.js';", 'rooms(imports)'],
  ['src/store/a.ts', "import './memory/index.js';", 'rooms(imports)'],
  ['src/store/b.ts', "import './open.js';", 'rooms(imports)'],
  ['src/store/door.ts', "import './redis/index.js';", 'rooms(imports)'],
  ['src/store/memory/a.ts', "import '../sqlite/index.js';", 'rooms(imports)'],
  ['src/store/memory/b.ts', "import '../open.js';", 'rooms(imports)'],
  ['src/store/memory/c.ts', "import '../../session/renewer.js';", 'rooms(imports)'],
  ['src/store/memory/d.ts', "import '../client/read-on.js';", 'rooms(imports)'],
  ['src/store/sqlite/a.ts', "import '../../handle/job.js';", 'rooms(imports)'],
  ['src/store/sqlite/b.ts', "import 'better-sqlite3';", 'rooms(imports)'],
  ['src/lock/c.ts', "import 'better-sqlite3';", 'rooms(imports)'],
  ['src/job/b.ts', "import 'left-pad';", 'rooms(imports)'],
  ['src/job/c.ts', "import '../../test/support/x.js';", 'rooms(imports)'],
  ['src/worker/d.ts', "import '../testing/index.js';", 'rooms(imports)'],
  ['src/worker/f.ts', "import '../compat/names.js';", 'rooms(imports)'],
  ['src/compat/a.ts', "import '../store/sqlite/index.js';", 'rooms(imports)'],
  ['src/compat/b.ts', "import '../testing/index.js';", 'rooms(imports)'],
  ['src/testing/a.ts', "import '../session/renewer.js';", 'rooms(imports)'],
  ['src/testing/b.ts', "import '../store/sqlite/index.js';", 'rooms(imports)'],
  ['src/cellar/a.ts', "import '../job/state.js';", 'rooms(imports)'],
  // However the module is named.
  ['src/queue/type.ts', "import type { W } from '../worker/worker.js';\nexport type X = W;", 'rooms(imports)'],
  ['src/queue/type-of.ts', "export type X = import('../worker/worker.js').W;", 'rooms(imports)'],
  ['src/queue/dynamic.ts', "export const load = (): unknown => import('../worker/worker.js');", 'rooms(imports)'],
  ['src/queue/reexport.ts', "export { x } from '../worker/worker.js';", 'rooms(imports)'],
  ['src/queue/all.ts', "export * from '../worker/worker.js';", 'rooms(imports)'],
  [
    'src/store/sqlite/require.ts',
    "export const load = (require: NodeJS.Require): unknown => require('better-sqlite3');",
    'rooms(imports)',
  ],
  // The door, cycles and promises.
  ['src/index.ts', 'export const made = 1;', 'rooms(only-reexports)'],
  ['src/job/egg.ts', "import { hen } from './hen.js';\nexport const egg = (): unknown => hen;", 'import(no-cycle)'],
  [
    'src/job/hen.ts',
    "import type { egg } from './egg.js';\nexport const hen = (layer: typeof egg): unknown => layer;",
    'import(no-cycle)',
  ],
  ['src/job/floating.ts', 'async function work(): Promise<void> {}\nwork();', 'typescript(no-floating-promises)'],
  ['src/job/misused.ts', 'export const later = (): unknown => setTimeout(async () => {}, 1);', 'typescript(no-misused-promises)'],
];

const ALLOWED: [file: string, code: string][] = [
  ['src/runtime/x.ts', "import '../errors.js';"],
  ['src/job/x.ts', "import '../runtime/clock.js';\nimport 'node:fs';"],
  ['src/store/x.ts', "import '../job/state.js';\nimport './contract/index.js';"],
  ['src/store/open.ts', "import './memory/index.js';\nexport const load = (): unknown => import('./sqlite/index.js');"],
  ['src/store/memory/y.ts', "import '../door.js';"],
  ['src/store/memory/x.ts', "import '../contract/index.js';\nimport './claim.js';\nimport '../../job/state.js';"],
  ['src/store/sqlite/driver/better-sqlite3.ts', "import 'better-sqlite3';"],
  ['src/handle/x.ts', "import '../store/contract/index.js';"],
  ['src/maintenance/x.ts', "import '../store/contract/index.js';"],
  ['src/session/x.ts', "import '../store/contract/index.js';\nimport './trust.js';"],
  ['src/store/client/x.ts', "import '../contract/index.js';\nimport '../../session/session.js';"],
  ['src/renewal/x.ts', "import '../session/session-memory.js';"],
  ['src/background/x.ts', "import '../renewal/renewal-loop.js';\nimport '../maintenance/sweeper.js';"],
  ['src/lock/x.ts', "import '../background/renewers.js';\nimport '../store/open.js';"],
  ['src/queue/x.ts', "import '../handle/job.js';\nimport '../lock/lock-client.js';\nimport '../store/open.js';"],
  ['src/events/x.ts', "import '../handle/job.js';\nimport '../store/open.js';"],
  ['src/worker/x.ts', "import '../session/renewer.js';\nimport '../handle/job.js';"],
  ['src/compat/x.ts', "import '../queue/queue.js';\nimport '../worker/worker.js';\nimport '../events/queue-events.js';"],
  ['src/testing/x.ts', "import '../store/contract/index.js';"],
];

interface Diagnostic {
  code: string;
  filename: string;
}

let folder: string;
let found: Map<string, string[]>;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-lint-'));
  for (const path of ['.oxlintrc.json', 'tsconfig.json', 'scripts/lint-rooms.mjs']) cpSync(join(root, path), join(folder, path));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const [path, code] of [...FORBIDDEN, ...ALLOWED]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `${code}\n`);
  }
  const oxlint = join(root, 'node_modules/oxlint/bin/oxlint');
  const run = spawnSync(process.execPath, [oxlint, '--type-aware', '--format', 'json', 'src'], { cwd: folder, encoding: 'utf8' });
  found = new Map();
  for (const { filename, code } of (JSON.parse(run.stdout) as { diagnostics: Diagnostic[] }).diagnostics) {
    found.set(filename, [...(found.get(filename) ?? []), code]);
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the linter reports', () => {
  test.each(FORBIDDEN)('%s: %s', (file, _code, rule) => {
    expect(found.get(file)).toEqual([rule]);
  });
});

describe('the linter lets pass', () => {
  test.each(ALLOWED)('%s: %s', (file) => {
    expect(found.get(file)).toBeUndefined();
  });
});
