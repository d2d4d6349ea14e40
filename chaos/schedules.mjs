// The schedule of chaos: a job every second. When the faults are over, it must come to be on time again; then it is paused, so that the
// queue can be empty.
import { setTimeout as sleep } from 'node:timers/promises';
import { jobName } from './job-name.mjs';

export const SCHEDULE = 'beat';
export const EVERY_MS = 1000;

/** The id of a job that a schedule made. */
export const isSlot = (jobId) => jobId?.startsWith(`repeat:${SCHEDULE}:`) === true;

export async function endSchedules(store, queues, calmMs, note) {
  for (const queue of queues) {
    const deadline = performance.now() + calmMs;
    for (;;) {
      const read = await recordOf(store(), queue).catch(() => undefined);
      const isOver = performance.now() > deadline;
      if (read !== undefined && (isOver || (read.record?.state === 'running' && read.record.at > read.now))) {
        const { record = {}, now } = read;
        note('schedule', {
          schedule: jobName(queue, `repeat:${SCHEDULE}`),
          state: record.state ?? 'missing',
          lateMs: Math.max(0, now - (record.at ?? 0)),
        });
        if ((await paused(store(), queue, record)) || isOver) break;
      }
      await sleep(20);
    }
  }
}

async function recordOf(store, queue) {
  const { schedules } = await store.status(queue, { schedules: { ids: [SCHEDULE] } });
  return { record: schedules.records[0], now: schedules.now };
}

/** A worker may have been faster. */
async function paused(store, queue, { version = 0 }) {
  const [reply] = await store.schedule(queue, [{ kind: 'pause', id: SCHEDULE, version }]).catch(() => []);
  return reply?.status === 'done';
}
