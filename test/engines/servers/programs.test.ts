// Finding the programs that tests start, and installing those that are missing, with an apt-get that only writes down what it is told.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { folderOf } from '../../support/servers/programs.js';

let folder: string;
const here = (name: string): string => join(folder, name);
const around = (isRoot = true) => ({ path: `${here('empty')}:${here('bin')}`, isRoot, policy: here('policy-rc.d') });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-programs-'));
  mkdirSync(here('bin'));
  vi.spyOn(console, 'log').mockReturnValue(undefined);
  vi.stubEnv('HOLDFAST_TEST_INSTALLED_IN_VAIN', undefined);
});

afterEach(() => {
  rmSync(folder, { recursive: true });
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

function aptGet(installing: string): void {
  const script = ['#!/bin/sh', `echo "$*" >>${here('told')}`, `case "$*" in *install*) ${installing};; esac`];
  writeFileSync(here('bin/apt-get'), script.join('\n'), { mode: 0o755 });
}

const told = (): string[] => readFileSync(here('told'), 'utf8').trim().split('\n');

test('a program on the PATH is found, and nothing is installed', async () => {
  aptGet('exit 1');
  writeFileSync(here('bin/redis-server'), '');
  expect(await folderOf('redis', around())).toBe(here('bin'));
  expect(existsSync(here('told'))).toBe(false);
});

test('a missing program is installed by root, without its service being started', async () => {
  aptGet(`/bin/cp ${here('policy-rc.d')} ${here('policy-then')}; : >${here('bin/redis-server')}`);
  expect(await folderOf('redis', around())).toBe(here('bin'));
  expect(told()).toEqual([
    expect.stringMatching(/ update$/),
    expect.stringMatching(/ install -y --no-install-recommends redis-server$/),
  ]);
  expect(readFileSync(here('policy-then'), 'utf8')).toContain('exit 101');
  expect(existsSync(here('policy-rc.d'))).toBe(false);
});

test('an existing policy-rc.d stays as it is', async () => {
  writeFileSync(here('policy-rc.d'), 'mine');
  aptGet(`: >${here('bin/redis-server')}`);
  await folderOf('redis', around());
  expect(readFileSync(here('policy-rc.d'), 'utf8')).toBe('mine');
});

test('the error has the line to type and the reason when a program cannot be installed, which is not retried', async () => {
  aptGet('echo "no network" >&2; exit 100');
  const line = 'apt-get install -y --no-install-recommends redis-server';
  await expect(folderOf('redis', around())).rejects.toThrow(new RegExp(`\\n  ${line}\\n[^]*no network`));
  await expect(folderOf('redis', around())).rejects.toThrow(`\n  ${line}\nInstalling it was tried before, in vain.`);
  expect(told()).toHaveLength(2);
  expect(existsSync(here('policy-rc.d'))).toBe(false);
});

test('another user than root gets the line to type, and nothing is tried', async () => {
  aptGet('exit 0');
  await expect(folderOf('redis', around(false))).rejects.toThrow(
    '\n  sudo apt-get install -y --no-install-recommends redis-server\n',
  );
  expect(existsSync(here('told'))).toBe(false);
});

test('the error says that apt-get is missing', async () => {
  await expect(folderOf('redis', around())).rejects.toThrow('There is no apt-get');
});
