// The binaries that the package ships for Node 20. A tarball without them would work for its maintainers and for nobody on Node 20.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bringPrebuilt } from '../../scripts/prebuilt.mjs';
import { root } from './install.js';

const MUSL = 'linux-arm64/@photostructure+sqlite.musl.node';

interface Place {
  folder: string;
  source: string;
  target: string;
  bring(): void;
}

/** A folder with a copy of the installed package. */
function place(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-prebuilt-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const source = join(folder, 'source');
  const target = join(folder, 'prebuilt');
  const installed = join(root, 'node_modules', '@photostructure', 'sqlite');
  for (const name of ['package.json', 'LICENSE', 'prebuilds'])
    cpSync(join(installed, name), join(source, name), { recursive: true });
  return { folder, source, target, bring: () => bringPrebuilt({ source, target, cache: join(folder, 'cache') }) };
}

const filesOf = (folder: string): string[] => readdirSync(folder, { recursive: true }).map(String).toSorted();

test('a build brings every binary, and replaces those that are damaged', () => {
  const { target, bring } = place();
  bring();
  const files = filesOf(target);
  expect(files.filter((file) => file.endsWith('.node'))).toHaveLength(8);
  expect(files).toContain(MUSL);
  truncateSync(join(target, MUSL));
  rmSync(join(target, 'win32-x64'), { recursive: true });
  bring();
  expect(filesOf(target)).toEqual(files);
});

test('a package that lacks a binary is refused with its name, and what was there stays', () => {
  const { source, target, bring } = place();
  rmSync(join(source, 'prebuilds', MUSL));
  expect(bring).toThrow(MUSL);
  expect(existsSync(target)).toBe(false);
});

test('where the package is not installed, binaries that are there do, and missing ones are refused with what to type', () => {
  const { source, target, bring } = place();
  bring();
  rmSync(source, { recursive: true });
  bring();
  rmSync(join(target, MUSL));
  expect(bring).toThrow(/not installed.*linux-arm64.*npm ci/);
});

test('npm pack fails where the package is not installed, with what to type', () => {
  const { folder } = place();
  const clone = join(folder, 'clone');
  mkdirSync(clone);
  for (const name of ['package.json', 'scripts']) cpSync(join(root, name), join(clone, name), { recursive: true });
  const [cli] = [process.env['npm_execpath']].filter((path) => path?.endsWith('.js'));
  const [command, first] = cli === undefined ? ['npm', []] : [process.execPath, [cli]];
  const typescript = join(clone, 'node_modules', 'typescript');
  cpSync(join(root, 'node_modules', 'typescript', 'package.json'), join(typescript, 'package.json'));
  const packed = spawnSync(command, [...first, 'pack', '--ignore-scripts=false'], { cwd: clone, encoding: 'utf8' });
  expect(packed.status).not.toBe(0);
  expect(packed.stderr + packed.stdout).toContain('Run: npm ci');
  expect(readdirSync(clone).filter((name) => name.endsWith('.tgz'))).toEqual([]);
});
