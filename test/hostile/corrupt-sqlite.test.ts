// Rows of a SQLite file that somebody has edited.
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { type Damage, survive } from './survival.js';
import { watchForDamage } from './verdict.js';
import { paced } from '../support/wait/pace.js';

watchForDamage();

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-hostile-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function edit(sql: string): Damage['hit'] {
  return async ({ queue, jobId }) => {
    const db = new Database(join(folder, 'jobs.db'));
    try {
      db.prepare(sql).run({ queue, jobId });
    } finally {
      db.close();
    }
  };
}

const job = (change: string): Damage['hit'] =>
  edit(`UPDATE jobs SET ${change} WHERE queue = (SELECT queue FROM queues WHERE name = @queue) AND id = @jobId`);
const queue = (change: string): Damage['hit'] => edit(`UPDATE queues SET ${change} WHERE name = @queue AND @jobId = @jobId`);

const events = edit(
  "UPDATE events SET body = 'no JSON' WHERE queue = (SELECT queue FROM queues WHERE name = @queue) AND @jobId = @jobId",
);

const DAMAGES: Damage[] = [
  { ...jobDamage("data = 'no JSON'"), reason: /not JSON/ },
  { ...jobDamage("opts = 'no JSON'"), reason: /not JSON/ },
  ...["data = ''", 'data = 7', 'data = \'{"__proto__":{"polluted":1}}\''].map(jobDamage),
  ...["opts = 'null'", "opts = '[]'", "opts = '7'", 'opts = \'{"attempts":"x","backoff":7e9}\''].map(jobDamage),
  ...["name = ''", 'priority = -3', 'delay = -1', "lockKey = 'k'", 'state = 77', 'state = -5'].map(jobDamage),
  ...["state = 3, session = 'ghost', fence = 1", 'state = 3, session = NULL, fence = NULL', 'state = 4, finishedOn = NULL'].map(
    jobDamage,
  ),
  ...["stacktrace = 'no JSON'", "stacktrace = '7'", "progress = 'no JSON'", 'failedReason = 7', "returnvalue = 'no JSON'"].map(
    wornDamage,
  ),
  ...['waiting = -7', 'waiting = 1000', 'active = -1', 'fence = 0'].map(queueDamage),
  { title: 'events that are no JSON', harms: 'job', hit: events },
];

function jobDamage(change: string): Damage {
  return { title: change, harms: 'job', hit: job(change) };
}

function wornDamage(change: string): Damage {
  return { ...jobDamage(change), worn: true };
}

function queueDamage(change: string): Damage {
  return { title: `of the queue: ${change}`, harms: 'queue', hit: queue(change) };
}

describe.concurrent('sqlite: others go on when somebody has set', () => {
  for (const damage of DAMAGES) {
    test(`${damage.title}`, { timeout: paced(60_000) }, () => survive(`sqlite:${join(folder, 'jobs.db')}`, damage));
  }
});

test('values of a wrong type are refused by the schema itself', async () => {
  const hit = { queue: 'typed', jobId: '1' };
  const made = new Queue(hit.queue, { connection: `sqlite:${join(folder, 'jobs.db')}` });
  await made.add('job', {});
  await made.close();
  for (const change of [
    "data = X'00FF'",
    "name = X'00'",
    'ord = NULL',
    "timestamp = 'then'",
    "attemptsMade = 'many'",
    "lockKey = X'00'",
    "dueAt = 'soon'",
  ]) {
    await expect(job(change)(hit), change).rejects.toThrow(/cannot store|NOT NULL/);
  }
});
