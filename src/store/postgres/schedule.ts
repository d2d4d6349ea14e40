// Schedules: puts, advances, pauses and removes them, with their next jobs. All changes of a call are one transaction. A repeated change
// finds another version, and must change nothing.
import type { ScheduleChange, ScheduleQuery, ScheduleReply, SchedulesFound, Slot } from '../contract/index.js';
import { columnsOf } from './record.js';
import type { Engine } from './driver/engine.js';
import type { Server } from './driver/server.js';

export async function schedule(engine: Engine, queue: string, changes: ScheduleChange[]): Promise<ScheduleReply[]> {
  const each = <T>(pick: (change: ScheduleChange) => T | undefined): (T | null)[] => changes.map((one) => pick(one) ?? null);
  const ofPut = <T>(pick: (put: Extract<ScheduleChange, { kind: 'put' }>) => T): (T | null)[] =>
    each((change) => (change.kind === 'put' ? pick(change) : undefined));
  const ofSlot = <T>(pick: (slot: Slot, id: string) => T | undefined): (T | null)[] =>
    each((change) => ('next' in change && change.next !== undefined ? pick(change.next, change.id) : undefined));
  const { ids: jobs, ...columns } = columnsOf(
    ofSlot(({ job, dueInMs }, scheduleId) => ({ ...job, delayMs: Math.max(0, dueInMs), scheduleId })),
  );
  const replies = await engine.sending([queue], (calls) =>
    calls.call<ScheduleReply[]>('schedule', {
      name: queue,
      kinds: each(({ kind }) => kind),
      ids: each(({ id }) => id),
      versions: each(({ version }) => version),
      specs: ofPut(({ spec }) => spec),
      serials: ofPut(({ serial }) => serial),
      ats: ofSlot(({ at }) => at),
      counts: ofSlot(({ count }) => count),
      jobs,
      ...columns,
    }),
  );
  if (replies.some(({ status }) => status === 'done')) engine.wake.signal(queue, 'jobs');
  return replies;
}

export function findSchedules(server: Server, queue: string, query: ScheduleQuery): Promise<SchedulesFound> {
  return server.call<SchedulesFound>('schedules_of', {
    name: queue,
    ids: 'ids' in query ? query.ids : null,
    limit: 'owing' in query ? query.limit : null,
    start: 'start' in query ? query.start : null,
    end: 'start' in query ? query.end : null,
    asc: 'start' in query ? query.asc : null,
  });
}
