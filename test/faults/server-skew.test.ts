// Hosts whose wall clocks are five minutes ahead and behind, beside one that is right: only the store's clock decides when a job is due
// and when a lock ends, so nothing changes.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Queue } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Crew, type Member, SERVER_ENGINES, serverOf } from '../support/processes/crew.js';
import { until } from '../support/wait/until.js';
import { wallClockShiftedBy } from '../support/servers/wall-clock.js';
import { paced } from '../support/wait/pace.js';

const SKEW_MS = 5 * 60_000;
const DELAY_MS = 1_500;
/** Enough for a wake-up or the next look, far less than the skew. */
const LATE_MS = paced(2_500);
const GRACE_MS = 500;
const OPTIONS = { concurrency: 8, lockDuration: 3_000, stalledInterval: 250, crashGraceMs: GRACE_MS };

const monotonic = (): number => Number(process.hrtime.bigint()) / 1e6;

describe.each(SERVER_ENGINES)('clock skew with %s', (engine) => {
  test('S4-14 clocks that are five minutes wrong cause no stall or double run; delayed jobs and recovery are on time', {
    timeout: paced(60_000),
  }, async () => {
    const server = await serverOf(engine);
    const { url: connection } = server;
    const crew = await Crew.on(connection);
    const clocks = { ahead: await wallClockShiftedBy(SKEW_MS), behind: await wallClockShiftedBy(-SKEW_MS) };
    crew.worker({ connection, options: OPTIONS });
    const ahead = crew.worker({ connection, options: OPTIONS, clock: clocks.ahead });
    const behind = crew.worker({ connection, options: OPTIONS, clock: clocks.behind });
    crew.producer({ connection, clock: clocks.ahead });
    crew.producer({ connection, clock: clocks.behind });
    await Promise.all(crew.members.map((member) => member.ready()));
    const wrongBy = (member: Member): number => (member.notes('clock')[0]?.['wall'] as number) - Date.now();
    expect(wrongBy(ahead)).toBeGreaterThan(SKEW_MS - 20_000);
    expect(wrongBy(behind)).toBeLessThan(-SKEW_MS + 20_000);

    const queue = new Queue('work', { connection });
    onTestFinished(() => queue.close());
    const starts = (id: string) => crew.workers.flatMap((member) => member.notes('start')).filter((note) => note['id'] === id);
    const add = async (key: string, data: object, delay = 0): Promise<{ id: string; at: number }> => {
      crew.note('adding', { keys: [key] });
      const at = monotonic();
      const { id } = await queue.add('job', { key, ...data }, { delay });
      crew.note('added', { jobs: [{ id, key }] });
      return { id, at };
    };
    const delayed = await Promise.all(Array.from({ length: 20 }, (_, n) => add(`delayed-${n}`, {}, DELAY_MS)));
    // Longer than the locks last: what is held is kept, whatever the clocks of those who look for the dead say.
    const long = await Promise.all(
      Array.from({ length: 6 }, (_, n) => add(`long-${n}`, { lastsMs: OPTIONS.lockDuration + 1_500 })),
    );
    const ended = (member: Member) => member.notes('end');
    await until('each to have worked', () => crew.workers.every((member) => ended(member).length > 20));
    await until('the long ones to end', () =>
      long.every(({ id }) => crew.workers.some((member) => ended(member).some((note) => note['id'] === id))),
    );
    expect(crew.count('stalled')).toBe(0);
    expect(crew.count('aborted')).toBe(0);
    for (const { id, at } of delayed) {
      const [start] = starts(id);
      const waited = (start?.at ?? 0) - at;
      expect(waited, `job ${id}`).toBeGreaterThanOrEqual(DELAY_MS - 5);
      expect(waited, `job ${id}`).toBeLessThan(DELAY_MS + LATE_MS);
    }

    // One with a wrong clock dies in the middle of a job, and is found by those with other clocks.
    const doomed: string[] = [];
    const gate = join(crew.folder, 'go-on');
    await until('the one ahead to hold a job', async () => {
      doomed.push((await add(`doomed-${doomed.length}`, { until: gate })).id);
      return ahead.notes('start').some((note) => doomed.includes(String(note['id'])));
    });
    const diedAt = monotonic();
    await ahead.kill();
    const held = ahead.notes('start').filter((note) => doomed.includes(String(note['id'])));
    const lost = held.map((note) => String(note['id']));
    await until('its jobs to run elsewhere', () => lost.every((id) => starts(id).length === 2));
    writeFileSync(gate, '');
    const recoveries = lost.map((id) => Math.round((starts(id).find(({ pid }) => pid !== ahead.child.pid)?.at ?? 0) - diedAt));
    for (const ms of recoveries) {
      expect(ms).toBeGreaterThanOrEqual(GRACE_MS - 50);
      expect(ms).toBeLessThan(OPTIONS.lockDuration + LATE_MS);
    }
    const { complaints } = await crew.finish();
    expect(complaints).toEqual([]);
    console.log(`skew on ${engine} (by ${clocks.ahead.by}): jobs of the dead ran elsewhere after ${recoveries.join(', ')} ms`);
    // What the dead one ran for a moment when it died counts too.
    expect(crew.count('stalled')).toBeGreaterThanOrEqual(lost.length);
    expect(crew.count('aborted')).toBe(0);
  });
});
