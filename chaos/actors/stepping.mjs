// Adds jobs of several steps, sends the signals that they wait for, and cancels some of them at random moments. The history says what was
// tried and what was acknowledged, and when a cancelled job was seen to have ended.
import { setTimeout as sleep } from 'node:timers/promises';
import { jobName } from '../job-name.mjs';
import { note, noteError, plan, random } from './actor.mjs';

const EVERY_MS = 900;
/** How long a canceller looks for the end of its job. */
const LOOKS = 60;
const LOOK_MS = 500;

let number = 0;

function draft() {
  number += 1;
  const key = `${plan.who}-steps-${number}`;
  const steps = Array.from({ length: random.between(2, 5) }, (_, nth) => ({
    kind: random.of(['step', 'step', 'nap', 'await']),
    name: `part-${nth}`,
    ms: random.chance(0.1) ? random.between(1000, 8000) : random.between(1, 300),
  }));
  const data = { key, does: 'steps', steps, stubborn: false };
  const opts = { ...plan.kept, jobId: `steps-${key}`, attempts: 1000, backoff: { type: 'fixed', delay: 50 } };
  return { data, opts };
}

/** Answers how to stop. */
export function startStepping(queue) {
  const over = new AbortController();
  const pause = (ms) => sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
  const beside = new Set();
  const start = (work) => {
    const running = work.catch(noteError).finally(() => beside.delete(running));
    beside.add(running);
  };
  const done = (async () => {
    while (!over.signal.aborted) {
      const { data, opts } = draft();
      const id = jobName(queue.name, opts.jobId);
      note('adding', { keys: [data.key] });
      try {
        await queue.add('steps', data, opts);
        note('added', { jobs: [{ id, key: data.key }] });
        for (const { name } of data.steps.filter(({ kind }) => kind === 'await')) start(signal(queue, opts.jobId, name, pause));
        if (random.chance(0.3)) start(cancel(queue, opts.jobId, pause, over.signal));
      } catch ({ code, message }) {
        // Not acknowledged: it may be there or not.
        note('refused', { code, message });
      }
      await pause(EVERY_MS * (0.5 + random.next()));
    }
  })();
  return async () => {
    over.abort();
    await done;
    await Promise.all(beside);
  };
}

async function signal(queue, id, name, pause) {
  await pause(random.between(0, 3000));
  await queue.signal(id, name, 'go on');
}

async function cancel(queue, id, pause, over) {
  await pause(random.chance(0.5) ? random.between(0, 300) : random.between(0, 4000));
  const named = { id: jobName(queue.name, id) };
  note('cancelling', named);
  if (!(await queue.cancel(id, 'by chaos'))) return;
  note('cancelled', named);
  for (let left = LOOKS; left > 0 && !over.aborted; left -= 1) {
    const job = await queue.getJob(id).catch(() => undefined);
    if (job !== undefined && (await job.getState().catch(() => 'unknown')) === 'failed') return note('cancelled, ended', named);
    await pause(LOOK_MS);
  }
}
