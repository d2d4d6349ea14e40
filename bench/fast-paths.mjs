// Measures what each variant of a fast path gains: the same work with the variant and without it, one after the other in pairs, in
// milliseconds of the processor (worker and server together). A variant that gains less than 15 % on its work has to go.
//   npm run build && node bench/fast-paths.mjs [name …] [--pairs 7] [--concurrency 10]
//   node bench/fast-paths.mjs --check: only checks that each variant can be taken out of the built package
// Without the variant: a copy of the built package in which one text is replaced, so that the call takes the ordinary path.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ownCpuMs } from './processor-time.mjs';
import { closeServers, serverCpuMs, serverUrl } from './servers.mjs';
import { median, spread } from './statistics.mjs';

/** Of a child process: its queue, of its own on a shared server, and how many jobs run at once. */
const [queue, concurrency] = process.argv.slice(6);
const root = fileURLToPath(new URL('..', import.meta.url));

/** `find` stands once in the file of the built package. */
const VARIANTS = [
  { name: 'postgres/add_plain', work: 'adds', find: '? await addPlain(', replace: '&& false ? await addPlain(' },
  { name: 'postgres/claim_plain', work: 'lone', find: '(remember || !isPlain', replace: '(true || !isPlain' },
  { name: 'postgres/settle_plain', work: 'backlog', find: '?? "plain"', replace: '?? void 0' },
  { name: 'postgres/settle_trimmed, removed', work: 'removed', find: '? "trimmed"', replace: '? void 0' },
  { name: 'postgres/settle_trimmed, counted', work: 'counted', find: '? "trimmed"', replace: '? void 0' },
  { name: 'postgres/settle_groups', work: 'groups', find: 'grouped === true ? "groups"', replace: 'grouped === 0 ? "groups"' },
  { name: 'postgres/settle_children', work: 'children', find: 'sent === true ? "children"', replace: 'sent === 0 ? "children"' },
  {
    name: 'postgres/unsuspected_alone',
    work: 'checks',
    find: 'await server.askShort("unsuspected_alone"',
    replace: 'void 0; void ("unsuspected_alone"',
  },
  { name: 'postgres/renew_one', work: 'renewals', find: 'renewals.length === 1 ?', replace: 'renewals.length === 0 ?' },
  { name: 'postgres/sweep_look', work: 'sweeps', find: 'await server.short("sweep_look"', replace: 'void 0; void ("sweep_look"' },
  { name: 'redis/plain-add', work: 'adds', find: 'if #ARGV == 3 + ARGV[3] and', replace: 'if false and' },
  { name: 'redis/plain-settle', work: 'backlog', find: "if ARGV[4] == '1' and", replace: 'if false and' },
  {
    name: 'redis/plain-settle, removed',
    work: 'removed',
    find: "if fits and size > 0 and ARGV[14] == '0' then\\n",
    replace: "fits = fits and (size == 0 or ARGV[14] == '')\\nif false then\\n",
  },
  { name: 'redis/plain-settle, groups', work: 'groups', find: 'grouped = found > 0', replace: 'if found > 0 then break end' },
  {
    name: 'redis/plain-settle, children',
    work: 'children',
    find: 'fits = kept > 0 and ARGV[16 + 3 * size] ~= nil',
    replace: 'fits = false',
  },
  {
    name: 'redis/plain-deliver',
    work: 'only children',
    find: "if ARGV[3] ~= '' then\\n  local stream",
    replace: 'if false then\\n  local stream',
  },
  { name: 'sqlite/complete-run', work: 'backlog', find: 'outcomes.length - start < SHORTEST', replace: 'true' },
  {
    name: 'sqlite/complete-run, removed',
    work: 'removed',
    find: 'first?.kind !== "completed" ||',
    replace: 'first?.kind !== "completed" || first.keep.count === 0 ||',
  },
  { name: 'sqlite/complete-marked, groups', work: 'groups', find: 'if (extras === void 0 ||', replace: 'if (true ||' },
  { name: 'sqlite/complete-marked, children', work: 'children', find: 'if (extras === void 0 ||', replace: 'if (true ||' },
];

const JOBS = {
  adds: 3000,
  lone: 1000,
  backlog: 40_000,
  removed: 40_000,
  counted: 40_000,
  groups: 20_000,
  children: 5000,
  'only children': 2000,
  checks: 4000,
  renewals: 4000,
  sweeps: 4000,
};

/** How long a worker has to start its lock thread, in ms. */
const WARM_MS = 1000;

/** The work of one process. Returns what is to be done once it is prepared. */
const WORKS = {
  adds: async ({ Queue }, connection, count) => {
    const jobs = new Queue(queue, { connection });
    await jobs.add('first', {});
    return async () => {
      for (let n = 0; n < count; n += 1) await jobs.add('work', { n });
    };
  },
  lone: async (product, connection, count) => {
    const jobs = new product.Queue(queue, { connection });
    let next = () => undefined;
    const worker = await workerOf(product, connection, () => next());
    await jobs.add('first', {});
    return async () => {
      for (let n = 0; n < count; n += 1) {
        const done = new Promise((resolve) => (next = resolve));
        await jobs.add('work', { n });
        await done;
      }
      await worker.close();
    };
  },
  backlog: (product, connection, count) => worked(product, connection, count, () => ({})),
  removed: (product, connection, count) => worked(product, connection, count, () => ({ removeOnComplete: true })),
  counted: (product, connection, count) => worked(product, connection, count, () => ({ removeOnComplete: 1000 })),
  groups: (product, connection, count) => worked(product, connection, count, (n) => ({ group: { id: `group ${n % 100}` } })),
  children: (product, connection, count) => ofParents(product, connection, count, 10),
  'only children': (product, connection, count) => ofParents(product, connection, count, 1),
  checks: async ({ openStore }, connection, count) => {
    const { store, session } = await opened(openStore, connection);
    return async () => {
      for (let n = 0; n < count; n += 1) await store.checkSessions([session]);
    };
  },
  renewals: async ({ openStore }, connection, count) => {
    const { store, session } = await opened(openStore, connection);
    return async () => {
      for (let n = 0; n < count; n += 1) await store.renew([{ ...session, acked: 0 }]);
    };
  },
  sweeps: async ({ openStore }, connection, count) => {
    const { store } = await opened(openStore, connection);
    return async () => {
      for (let n = 0; n < count; n += 1) await store.sweep(queue, 100);
    };
  },
};

/** Jobs of parents in another queue, so many for each. */
async function ofParents(product, connection, count, each) {
  const flow = new product.FlowProducer({ connection });
  for (let n = 0; n < count; n += each) {
    const children = Array.from({ length: each }, () => ({ name: 'child', queueName: queue, data: {} }));
    await flow.add({ name: 'parent', queueName: `parents of ${queue}`, data: {}, children });
  }
  return drained(product, connection, count);
}

async function opened(openStore, connection) {
  const store = await openStore(connection);
  const owner = { host: 'h', pid: 1, name: 'w', instance: 'i' };
  const session = { queue, id: 'session' };
  await store.openSession({ ...session, owner, durationMs: 3_600_000, maxStalls: 1, slots: 1 });
  return { store, session };
}

async function worked(product, connection, count, optsOf) {
  const jobs = new product.Queue(queue, { connection });
  for (let n = 0; n < count; n += 500) {
    await jobs.addBulk(Array.from({ length: 500 }, (_, index) => ({ name: 'work', data: {}, opts: optsOf(n + index) })));
  }
  return drained(product, connection, count);
}

/** The worker and its lock thread are up before the work begins: their start costs as much as some thousand jobs. */
async function drained(product, connection, count) {
  const jobs = new product.Queue(queue, { connection });
  await jobs.pause();
  let left = count;
  let end;
  const done = new Promise((resolve) => (end = resolve));
  const worker = await workerOf(product, connection, () => (left -= 1) === 0 && end());
  return async () => {
    await jobs.resume();
    await done;
    await worker.close();
  };
}

async function workerOf({ Worker }, connection, onDone) {
  const worker = new Worker(queue, async (_job) => undefined, {
    connection,
    concurrency: Number(concurrency),
    group: { concurrency: 1000 },
  });
  worker.on('completed', onDone);
  worker.on('error', (error) => console.error(error.message));
  await worker.waitUntilReady();
  await sleep(WARM_MS);
  return worker;
}

/** The child process: prepares the work, waits for the word, and reports its own processor time. */
async function work(dist, kind, connection) {
  const product = await import(join(dist, 'index.mjs'));
  const start = await WORKS[kind](product, connection, JOBS[kind]);
  process.send('ready');
  await once(process, 'message');
  const before = process.cpuUsage();
  await start();
  process.send({ ms: ownCpuMs(before) });
}

/** Returns the milliseconds of the processor for one job. */
async function measure(dist, kind, store, folder, atOnce) {
  const url = store === 'sqlite' ? `sqlite:${join(mkdtempSync(join(folder, 'file-')), 'jobs.db')}` : await serverUrl(store);
  const child = fork(fileURLToPath(import.meta.url), ['--child', dist, kind, url, `work ${(places += 1)}`, atOnce], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const word = async () => {
    const [reply] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
    if (typeof reply === 'number' || reply === null) throw new Error(`The work "${kind}" on ${store} ended with ${reply}.`);
    return reply;
  };
  await word();
  const before = serverCpuMs(store) ?? 0;
  child.send('go');
  const { ms } = await word();
  const server = (serverCpuMs(store) ?? 0) - before;
  child.kill('SIGKILL');
  await once(child, 'exit');
  return (ms + server) / JOBS[kind];
}

let places = 0;

/** Returns the file of the built package that holds the variant, and its text without the variant. */
function partWithout({ name, find, replace }) {
  const file = `${name.split('/')[0]}.js`;
  const text = readFileSync(join(root, 'dist', file), 'utf8');
  if (text.split(find).length !== 2) throw new Error(`${name}: ${JSON.stringify(find)} stands not once in dist/${file}.`);
  return { file, text: text.replace(find, () => replace) };
}

/** Returns the folder of a copy of the built package without the variant. */
function without(variant, folder) {
  const { file, text } = partWithout(variant);
  const copy = mkdtempSync(join(folder, 'without-'));
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  writeFileSync(join(copy, 'dist', file), text);
  return join(copy, 'dist');
}

async function main() {
  const { values, positionals } = parseArgs({
    options: {
      pairs: { type: 'string', default: '7' },
      concurrency: { type: 'string', default: '10' },
      check: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  if (values.check) {
    for (const variant of VARIANTS) partWithout(variant);
    console.log(`${VARIANTS.length} variants can be taken out.`);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'fast-paths-'));
  try {
    for (const variant of VARIANTS.filter(
      ({ name }) => positionals.length === 0 || positionals.some((text) => name.includes(text)),
    )) {
      const [store] = variant.name.split('/');
      const off = without(variant, folder);
      const ratios = [];
      const costs = [];
      for (let pair = 0; pair < Number(values.pairs); pair += 1) {
        const first = pair % 2 === 0;
        const one = await measure(first ? off : join(root, 'dist'), variant.work, store, folder, values.concurrency);
        const other = await measure(first ? join(root, 'dist') : off, variant.work, store, folder, values.concurrency);
        const [slow, fast] = first ? [one, other] : [other, one];
        ratios.push(slow / fast);
        costs.push([slow, fast]);
      }
      const { median: ratio, low, high } = spread(ratios);
      const [slow, fast] = [0, 1].map((at) => (median(costs.map((cost) => cost[at])) * 1000).toFixed(0));
      const range = `${low.toFixed(2)} to ${high.toFixed(2)}`;
      console.log(
        `${variant.name} (${variant.work}): ${ratio.toFixed(2)} (${range}): ${slow} µs of the processor without, ${fast} with`,
      );
    }
  } finally {
    await closeServers();
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[2] === '--child') await work(...process.argv.slice(3));
else await main();
