// The schedules of one queue, by their ids, and which of them are owing.
import type { ScheduleQuery, ScheduleRecord } from '../../contract/index.js';

export class StoredSchedule {
  spec = '';
  serial = false;
  state: ScheduleRecord['state'] = 'running';
  at = 0;
  count = 0;
  nextJobId: string | undefined = undefined;

  constructor(
    readonly id: string,
    public version: number,
  ) {}

  record(): ScheduleRecord {
    const { id, version, spec, serial, state, at, count, nextJobId } = this;
    return { id, version, spec, serial, state, at, count, ...(nextJobId !== undefined && { nextJobId }) };
  }
}

export class Schedules {
  readonly #byId = new Map<string, StoredSchedule>();
  readonly #owing = new Set<StoredSchedule>();

  get size(): number {
    return this.#byId.size;
  }

  /** How many schedules are owing. */
  get owing(): number {
    return this.#owing.size;
  }

  all(): StoredSchedule[] {
    return [...this.#byId.values()];
  }

  get(id: string): StoredSchedule | undefined {
    return this.#byId.get(id);
  }

  set(schedule: StoredSchedule, state: StoredSchedule['state']): void {
    schedule.state = state;
    this.#byId.set(schedule.id, schedule);
    if (state === 'owing') this.#owing.add(schedule);
    else this.#owing.delete(schedule);
  }

  delete(schedule: StoredSchedule): void {
    this.#byId.delete(schedule.id);
    this.#owing.delete(schedule);
  }

  find(query: Exclude<ScheduleQuery, { count: true }>): StoredSchedule[] {
    if ('ids' in query) return query.ids.map((id) => this.get(id)).filter((one) => one !== undefined);
    if ('owing' in query) return [...this.#owing].slice(0, query.limit);
    const { start, end, asc } = query;
    const sorted = this.all().sort(bySlot);
    if (!asc) sorted.reverse();
    return sorted.slice(start, end === -1 ? undefined : end + 1);
  }
}

function bySlot(a: StoredSchedule, b: StoredSchedule): number {
  return a.at - b.at || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id));
}
