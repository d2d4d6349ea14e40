// How much the server reads to list the groups of a queue. The work for a group must not depend on how many other groups there are.
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { newClient, newDatabase, newJob, openStore } from './support.js';
import { paced } from '../../support/wait/pace.js';

const FEW = 2_000;
const MANY = 20_000;
const PAGE = 500;

interface Explained {
  'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }];
}

async function addToEach(store: PostgresStore, queue: string, groups: number, seq: number): Promise<void> {
  const jobs = Array.from({ length: groups }, (_, n) => newJob({ group: `group ${n}` }));
  for (let from = 0; from < groups; from += 1_000) {
    await store.add(queue, jobs.slice(from, from + 1_000), { caller: queue, seq: seq * 1_000 + from / 1_000 });
  }
}

/** Lists all groups in pages. Returns how many blocks the server reads for that: in all, and at most for one page. */
async function blocksOf(
  admin: Client,
  store: PostgresStore,
  queue: string,
  groups: number,
): Promise<{ all: number; page: number }> {
  let after: string | undefined;
  let listed = 0;
  let all = 0;
  let most = 0;
  for (;;) {
    const { groups: found } = await store.status(queue, { groups: { limit: PAGE, ...(after !== undefined && { after }) } });
    const page = found?.groups ?? [];
    const { rows } = await admin.query<Explained>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT holdfast.groups_of('${queue}', NULL, ${PAGE}, ${after === undefined ? 'NULL' : `'${after}'`})`,
    );
    const plan = rows[0]?.['QUERY PLAN'][0].Plan;
    const blocks = (plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0);
    all += blocks;
    most = Math.max(most, blocks);
    listed += page.length;
    if (page.length < PAGE) break;
    after = page.at(-1)?.key;
  }
  expect(listed).toBe(groups);
  return { all, page: most };
}

test('listing ten times as many groups reads about ten times as much, and a page no more', {
  timeout: paced(120_000),
}, async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const admin = await newClient(url);
  const compare = async (): Promise<void> => {
    const few = await blocksOf(admin, store, 'few', FEW);
    const many = await blocksOf(admin, store, 'many', MANY);
    expect(few.all).toBeGreaterThan(FEW);
    expect(many.all).toBeLessThan(few.all * 15);
    expect(many.page).toBeLessThan(few.page * 3);
  };
  // While the server analyzes a table by itself, no scan can pass over the rows that died since.
  await admin.query(`DO $$ BEGIN
    EXECUTE (SELECT string_agg(format('ALTER TABLE %s SET (autovacuum_enabled = off);', oid::regclass), '') FROM pg_class
      WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r');
  END $$`);
  // At first all groups have notes and no rows.
  await addToEach(store, 'few', FEW, 1);
  await addToEach(store, 'many', MANY, 1);
  await compare();
  // Now all groups have rows. Then they have new notes too.
  await admin.query('SET search_path TO holdfast');
  for (let applied = 0; applied < MANY; applied += 10_000) await admin.query('SELECT count_groups(queue, 5000) FROM queues');
  await compare();
  await addToEach(store, 'few', FEW, 2);
  await addToEach(store, 'many', MANY, 2);
  await compare();
});
