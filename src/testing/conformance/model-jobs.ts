// The jobs of the model: the state of each job, and which jobs can be claimed.
import assert from 'node:assert/strict';
import type { LossFound } from '../../job/lost-by.js';
import type { StoredState } from '../../job/state.js';
import type { ListName } from '../../store/contract/index.js';

export interface ModelJob {
  state: StoredState;
  priority: number;
  key: string | undefined;
  stalls: number;
  attempts: number;
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

  /** Returns the priorities of the jobs that no key holds back, the smallest first. */
  claimable(): number[] {
    const ofKeys = new Map<string, number>();
    const free: number[] = [];
    for (const id of this.in('waiting')) {
      const { key, priority } = this.get(id);
      if (key === undefined) free.push(priority);
      else if (this.isFree(key)) ofKeys.set(key, Math.min(priority, ofKeys.get(key) ?? priority));
    }
    return [...free, ...ofKeys.values()].sort((a, b) => a - b);
  }

  /** Returns the named jobs that a claim by id takes. */
  takeable(ids: string[], count: number): string[] {
    const keys = new Set<string>();
    const taken: string[] = [];
    for (const id of ids) {
      const { state, key } = this.has(id) ? this.get(id) : { state: 'missing', key: undefined };
      if (state !== 'waiting' || taken.length >= count || !this.isFree(key) || (key !== undefined && keys.has(key))) continue;
      taken.push(id);
      if (key !== undefined) keys.add(key);
    }
    return taken;
  }
}
