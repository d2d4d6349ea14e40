// The jobs of the model: the state of each job, and which jobs can be claimed.
import assert from 'node:assert/strict';
import type { LossFound } from '../../job/lost-by.js';
import type { StoredState } from '../../job/state.js';
import type { ListName, Step } from '../../store/contract/index.js';

export interface ModelJob {
  state: StoredState;
  priority: number;
  key: string | undefined;
  group?: string | undefined;
  /** The deduplication id. */
  unique: string | undefined;
  /** The schedule that made the job. */
  scheduleId?: string;
  stalls: number;
  /** Claims that were not handed back unstarted. */
  starts: number;
  attempts: number;
  /** In the order in which they were recorded. */
  steps: Step[];
  /** The signal that the job waited for when it became delayed. */
  awaits?: string | undefined;
  /** True while the job is active and was cancelled. */
  cancelled?: boolean;
  /** How the last stall of the job was found. */
  found?: LossFound;
  /** Set while the job is active. */
  held?: { by: string; token: string };
}

export class ModelJobs extends Map<string, ModelJob> {
  override get(id: string): ModelJob {
    return super.get(id) ?? assert.fail(`the model knows no job ${id}`);
  }

  ids(): string[] {
    return [...this.keys()];
  }

  in(state: StoredState): string[] {
    return this.ids().filter((id) => this.get(id).state === state);
  }

  inList(name: ListName): string[] {
    if (name === 'prioritized') return this.in('waiting').filter((id) => this.get(id).priority > 0);
    if (name === 'waiting') return this.in('waiting').filter((id) => this.get(id).priority === 0);
    return this.in(name);
  }

  isFree(key: string | undefined): boolean {
    return key === undefined || !this.in('active').some((id) => this.get(id).key === key);
  }

  /** Returns the priorities of the jobs without a group that no key holds back, the smallest first. `taken`: jobs just claimed. */
  claimable(taken: ReadonlySet<string>): number[] {
    const ofKeys = new Map<string, number>();
    const free: number[] = [];
    const keys = new Set([...taken].map((id) => this.get(id).key));
    for (const id of this.in('waiting')) {
      const { key, priority, group } = this.get(id);
      if (taken.has(id) || group !== undefined) continue;
      if (key === undefined) free.push(priority);
      else if (this.isFree(key) && !keys.has(key)) ofKeys.set(key, Math.min(priority, ofKeys.get(key) ?? priority));
    }
    return [...free, ...ofKeys.values()].sort((a, b) => a - b);
  }

  /** Returns the named jobs that a claim by id takes. `hasPlace`: true if the group of a job has a place beside the jobs taken. */
  takeable(ids: string[], count: number, hasPlace: (group: string, taken: string[]) => boolean): string[] {
    const keys = new Set<string>();
    const taken: string[] = [];
    for (const id of ids) {
      const { state, key, group } = this.has(id) ? this.get(id) : { state: 'missing', key: undefined };
      if (group !== undefined && !hasPlace(group, taken)) continue;
      if (state !== 'waiting' || taken.length >= count || !this.isFree(key) || (key !== undefined && keys.has(key))) continue;
      taken.push(id);
      if (key !== undefined) keys.add(key);
    }
    return taken;
  }
}
