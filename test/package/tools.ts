// Programs of others that the package must work with: versions of Node, Jest, TypeScript, bundlers. They come from the npm registry into
// node_modules/.cache at their first use, and stay there.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm, root } from './install.js';

const TYPES_NODE = '@types/node@20.19.43';
const TOOLS = {
  jest29: ['jest@29.7.0', 'ts-jest@29.4.15', 'typescript@5.4.5'],
  jest30: ['jest@30.5.2', 'ts-jest@29.4.15', 'typescript@5.9.3'],
  typescript54: ['typescript@5.4.5', TYPES_NODE],
  esbuild: ['esbuild@0.28.2'],
  webpack: ['webpack@5.112.2'],
  typescript59: ['typescript@5.9.3', TYPES_NODE],
};

export type Tool = keyof typeof TOOLS;

/** @returns the node_modules folder that holds the tool */
export function tool(name: Tool): string {
  return installed(name, TOOLS[name]);
}

/** @returns the file to run for a version of Node; this one for the version that runs the tests */
export function nodeOf(major: number): string {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const name = `node-${platform}-${process.arch}`;
  return join(installed(`node${major}`, [`${name}@${NODES[major]}`]), name, 'bin', 'node');
}

const NODES: Record<number, string> = { 20: '20.20.2', 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' };

export function installed(name: string, packages: string[]): string {
  const folder = join(root, 'node_modules', '.cache', 'holdfast-tools', [name, ...packages].join('_').replaceAll('/', '+'));
  if (!existsSync(folder)) {
    const fresh = `${folder}.${process.pid}`;
    mkdirSync(fresh, { recursive: true });
    try {
      writeFileSync(join(fresh, 'package.json'), JSON.stringify({ name: 'tools', private: true }));
      npm(fresh, [
        'install',
        '--prefer-offline',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--no-package-lock',
        ...packages,
      ]);
      renameSync(fresh, folder);
    } catch (error) {
      // Another process may have been faster.
      if (!existsSync(folder)) throw error;
    } finally {
      rmSync(fresh, { recursive: true, force: true });
    }
  }
  return join(folder, 'node_modules');
}
