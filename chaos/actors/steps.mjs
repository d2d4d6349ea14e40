// The handler of a job of several steps. The history is the ledger of their effects: who did which step, under which key and fence, and who
// was told that it is recorded.
import { setTimeout as sleep } from 'node:timers/promises';
import { jobName } from '../job-name.mjs';
import { note } from './actor.mjs';

const WAIT_MS = 8000;

export async function doSteps(queue, job, signal) {
  const id = jobName(queue, job.id);
  const { fence } = job.lock;
  for (const { kind, name, ms } of job.data.steps) {
    if (kind === 'nap') await job.sleep(name, ms);
    else if (kind === 'await') await waitFor(job, name, signal);
    else {
      await job.step(name, async ({ key, fence: given }) => {
        note('step', { id, name, key, fence: given });
        await sleep(Math.min(ms, 1000));
        return fence;
      });
      note('step recorded', { id, name, fence });
    }
  }
}

async function waitFor(job, name, signal) {
  try {
    await job.waitFor(name, { timeoutMs: WAIT_MS });
  } catch (error) {
    // No signal came: its sender was killed.
    if (error.code !== 'TIMEOUT' || signal.aborted) throw error;
  }
}
