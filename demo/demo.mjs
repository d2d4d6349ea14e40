// The promise of Holdfast, visible in a terminal: real worker processes on one SQLite file. Exits with 0 only if everything
// that it claims was observed.
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { openStore, Queue } from 'holdfast';
import { View } from './view.mjs';

const LOCK_MS = 1000;
const SPIN_MS = 5000;
const PATIENCE_MS = 20_000;
const WORKER = fileURLToPath(new URL('./worker.mjs', import.meta.url));

const folder = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
const url = `sqlite:${join(folder, 'jobs.db')}`;
const store = await openStore(url);
const started = performance.now();
const results = [];
const children = new Set();

try {
  await act('1. Lock renewed on the event loop', {
    intro: `The handler blocks its loop for ${SPIN_MS / 1000} s with a ${LOCK_MS / 1000} s lock; nothing can renew it meanwhile.`,
    worker: { thread: false, spinMs: SPIN_MS, stalledInterval: LOCK_MS / 2 },
    claim: 'run twice, the first finish refused',
    observed: (seen) => seen.runs.length >= 2 && seen.refused > 0 && seen.accepted === 1,
    until: (seen) => seen.accepted > 0 && seen.refused > 0,
  });
  await act('2. Lock renewed by the lock thread', {
    intro: 'The same handler, the same lock, useDedicatedLockThread: true (the default).',
    worker: { thread: true, spinMs: SPIN_MS, stalledInterval: LOCK_MS / 2 },
    claim: 'run once, lock held to the end',
    observed: (seen) => seen.runs.length === 1 && seen.refused === 0 && seen.accepted === 1 && seen.heldAtEnd === true,
    until: (seen) => seen.accepted > 0,
  });
  await act('3. SIGKILL with default lock options', {
    intro: 'A worker with a 30 s lock is killed in the middle of a job; its process is gone, and the others notice.',
    worker: { thread: true, spinMs: 0, waitMs: 1500, lockDuration: 30_000 },
    kill: true,
    claim: 'taken up by another within 5 s',
    observed: (seen) => seen.runs.length === 2 && seen.takenUpMs < 5000 && seen.accepted === 1,
    until: (seen) => seen.accepted > 0,
  });
} finally {
  await Promise.all([...children].map(stop));
  await store.close();
  await rm(folder, { recursive: true, force: true });
}
summary();

async function act(title, { intro, worker, kill = false, claim, observed, until }) {
  console.log(`\n${styleText('bold', title)}\n${styleText('dim', intro)}`);
  const queue = new Queue(`act-${results.length + 1}`, { connection: store });
  const lockDuration = worker.lockDuration ?? LOCK_MS;
  const seen = { runs: [], accepted: 0, refused: 0, heldAtEnd: undefined, takenUpMs: Number.NaN, killedAt: undefined };
  const view = new View(store, queue.name, lockDuration);
  const done = withResolvers();
  const team = ['A', 'B'].map((name) => launch({ waitMs: 300, ...worker, name, queue: queue.name, url, lockDuration }));
  for (const child of team) {
    child.on('message', (event) => {
      note(event, seen, view, child, kill);
      if (until(seen)) done.resolve();
    });
  }
  await Promise.all(team.map((child) => new Promise((resolve) => child.once('message', resolve))));
  await queue.add('work', { act: results.length + 1 });
  const timer = setTimeout(done.resolve, PATIENCE_MS);
  await done.promise;
  clearTimeout(timer);
  view.stop();
  await Promise.all(team.map(stop));
  await queue.close();
  const ok = observed(seen);
  const recovery = Number.isNaN(seen.takenUpMs) ? '' : `${(seen.takenUpMs / 1000).toFixed(1)} s`;
  results.push({ title, claim, runs: seen.runs.length, accepted: seen.accepted, refused: seen.refused, recovery, ok });
}

function note(event, seen, view, child, kill) {
  const who = styleText('cyan', event.worker ?? '');
  if (event.type === 'run') {
    seen.runs.push(event);
    if (seen.killedAt !== undefined) seen.takenUpMs = performance.now() - seen.killedAt;
    view.say(`  ${who} runs job ${event.jobId} (run ${seen.runs.length}, fence ${event.fence})`);
    if (kill && seen.killedAt === undefined) {
      seen.killedAt = performance.now();
      child.kill('SIGKILL');
      view.say(`  ${styleText('red', `SIGKILL to ${event.worker}`)}`);
    }
  } else if (event.type === 'end') {
    seen.heldAtEnd = event.held;
    view.say(
      `  ${who} ends its run with fence ${event.fence}; the lock is ${event.held ? 'held' : 'no longer held, and it knows'}`,
    );
  } else if (event.type === 'accepted') {
    seen.accepted += 1;
    view.say(`  ${styleText('green', `the finish of ${event.worker} is accepted`)}`);
  } else if (event.type === 'refused') {
    seen.refused += 1;
    view.say(`  ${styleText('yellow', `the finish of ${event.worker} is refused: its lock was lost`)}`);
  } else if (event.type === 'stalled') view.say(`  ${who} finds job ${event.jobId} without a live owner`);
}

function launch(settings) {
  const child = fork(WORKER, [JSON.stringify(settings)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  if (child.connected) child.send('close');
  const timer = setTimeout(() => child.kill('SIGKILL'), 8000);
  await gone;
  clearTimeout(timer);
}

function summary() {
  const head = ['', 'runs', 'accepted', 'refused', 'taken up after', 'claimed', 'observed'];
  const rows = results.map(({ title, claim, runs, accepted, refused, recovery, ok }) => [
    title,
    String(runs),
    String(accepted),
    String(refused),
    recovery,
    claim,
    ok ? 'yes' : 'NO',
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)));
  const line = (row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ');
  console.log(`\n${styleText('bold', line(head))}\n${rows.map(line).join('\n')}\n`);
  const ok = results.length === 3 && results.every((result) => result.ok);
  console.log(
    `${ok ? 'Everything that was claimed was observed' : 'Not everything was observed'}, in ${Math.round((performance.now() - started) / 1000)} s.`,
  );
  process.exitCode = ok ? 0 : 1;
}

function withResolvers() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
