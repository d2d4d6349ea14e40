// What a figure is worth without: the machine, the versions and the command.
import { cpus, totalmem } from 'node:os';
import { execFileSync } from 'node:child_process';
import { Redis } from 'ioredis';
import pg from 'pg';
import { CONTESTANTS } from './contestants.mjs';
import { newerNode, versionOf } from './peers.mjs';
import { serverUrl } from './servers.mjs';

const FILES = ['--json', '--svg', '--from'];

export async function machine(settings, withPeers) {
  const { stores, rounds } = settings;
  const packages = withPeers ? CONTESTANTS.flatMap((contestant) => contestant.package ?? []) : [];
  const versions = {
    node: process.version,
    ...(withPeers ? { 'node of pg-boss and @boringnode/queue': versionOfNode(newerNode()) } : {}),
    ...(stores.includes('redis') ? { redis: await redisVersion() } : {}),
    ...(stores.includes('postgres') ? { postgres: await postgresVersion() } : {}),
    ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
  };
  return {
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      system: `${process.platform} ${process.arch}`,
    },
    versions,
    command: commandOf(process.argv.slice(2)),
    date: new Date().toISOString().slice(0, 10),
    rounds,
  };
}

function versionOfNode(path) {
  return execFileSync(path, ['--version']).toString().trim();
}

async function redisVersion() {
  const client = new Redis(await serverUrl('redis'));
  const info = await client.info('server');
  await client.quit();
  return /redis_version:(\S+)/.exec(info)?.[1];
}

async function postgresVersion() {
  const client = new pg.Client({ connectionString: await serverUrl('postgres') });
  await client.connect();
  const { rows } = await client.query('SHOW server_version');
  await client.end();
  return rows[0].server_version.split(' ')[0];
}

/** Without the files that it wrote, which say nothing about the figures. */
function commandOf(args) {
  const telling = args.filter((arg, index) => !FILES.includes(arg) && !FILES.includes(args[index - 1]) && arg !== '--write');
  return ['npm run bench', ...(telling.length > 0 ? ['--', ...telling] : [])].join(' ');
}
