// Keeps the build of the current sources as test/previous-build.tgz: the version that the next one must run beside in a rolling deploy.
// Only what runs is kept: no types, no source maps, no published test suite.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
await build();
const { status } = spawnSync(
  'tar',
  [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--mtime=2026-01-01',
    '--exclude=*.d.ts',
    '--exclude=*.map',
    '--exclude=dist/testing',
    '--exclude=dist/compat',
    '--exclude=dist/.stamp',
    '-czf',
    join(root, 'test', 'previous-build.tgz'),
    '-C',
    root,
    'package.json',
    'dist',
  ],
  { stdio: 'inherit' },
);
process.exitCode = status ?? 1;
