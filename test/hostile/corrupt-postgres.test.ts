// Rows of a PostgreSQL schema that somebody has edited.
import { Client } from 'pg';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/servers/shared.js';
import { type Damage, survive } from './survival.js';
import { watchForDamage } from './verdict.js';
import { paced } from '../support/wait/pace.js';

watchForDamage();

let database: FreshDatabase;
let client: Client;
beforeAll(async () => {
  database = await freshDatabase();
  client = new Client({ connectionString: database.url });
  client.on('error', () => undefined);
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

const QUEUE = '(SELECT queue FROM holdfast.queues WHERE name = $1)';
const job =
  (change: string): Damage['hit'] =>
  ({ queue, jobId }) =>
    client.query(`UPDATE holdfast.jobs SET ${change} WHERE queue = ${QUEUE} AND id = $2`, [queue, jobId]);
const all =
  (statement: string): Damage['hit'] =>
  ({ queue }) =>
    client.query(statement, [queue]);

const DAMAGES: Damage[] = [
  { ...jobDamage("data = 'no JSON'"), reason: /not JSON/ },
  { ...jobDamage("opts = 'no JSON'"), reason: /not JSON/ },
  ...["data = ''", "data = '7'", 'data = \'{"__proto__":{"polluted":1}}\'', "opts = 'null'", "opts = '[]'", "opts = '7'"].map(
    jobDamage,
  ),
  ...["name = ''", 'priority = -3', 'delay = -1', "delay = 'NaN'", "timestamp = 'Infinity'", "lock_key = 'k'"].map(jobDamage),
  ...[
    'state = 77',
    'state = -5',
    'ord = -9223372036854775808',
    "state = 3, session = 'ghost', fence = 1",
    'state = 3, session = NULL, fence = NULL',
  ].map(jobDamage),
  ...['state = 2, due_at = NULL', 'state = 4, finished_on = NULL', 'log_next = 7'].map(jobDamage),
  ...["stacktrace = 'no JSON'", "stacktrace = '7'", "progress = 'no JSON'", "returnvalue = 'no JSON'"].map((change) => ({
    ...jobDamage(change),
    worn: true,
  })),
  queueDamage('counts below zero', `UPDATE holdfast.queues SET waiting = -7, active = -1 WHERE name = $1`),
  queueDamage('a journal that is no JSON', `UPDATE holdfast.journal SET body = 'no JSON' WHERE queue = ${QUEUE}`),
  queueDamage('events that are no JSON', `UPDATE holdfast.events SET body = 'no JSON' WHERE queue = ${QUEUE}`),
  queueDamage('its row gone', 'DELETE FROM holdfast.queues WHERE name = $1'),
];

function jobDamage(change: string): Damage {
  return { title: change, harms: 'job', hit: job(change) };
}

function queueDamage(title: string, statement: string): Damage {
  return { title: `of the queue: ${title}`, harms: 'queue', hit: all(statement) };
}

describe.concurrent('postgres: others go on when somebody has set', () => {
  for (const damage of DAMAGES) test(`${damage.title}`, { timeout: paced(60_000) }, () => survive(database.url, damage));
});
