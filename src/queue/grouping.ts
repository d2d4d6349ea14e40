// The group methods of a Queue: limits of single groups, pause and resume, and the groups with their waiting jobs.
import { JOB_CONTEXT } from '../handle/job-context.js';
import { Job } from '../handle/job.js';
import type { JobOf } from '../handle/typed-job.js';
import { checkGroupConcurrency, checkGroupId, checkGroupRate, type GroupRateLimit } from '../job/group.js';
import { checkInteger, MAX_DELAY_MS } from '../runtime/check.js';
import { readGroup } from '../store/client/read-on.js';
import type { GroupInfo, GroupRules, GroupSettings } from '../store/contract/index.js';
import { QueueLimits } from './limits.js';

/** Groups that are read in one call. */
const PAGE = 500;
const NO_LIMIT = -2;

/** A group that has waiting or active jobs, or settings of its own. */
export interface GroupStatus {
  id: string;
  /** maxed: as many jobs are active as its concurrency allows. limited: a rate limit holds it. waiting: its jobs may start. */
  status: 'waiting' | 'limited' | 'maxed' | 'paused';
  /** How many of its jobs are active. */
  active: number;
}

export abstract class QueueGroups<T, R, N extends string> extends QueueLimits<T, R, N> {
  /** Lets at most this many jobs of the group run at once, instead of as many as the worker option `group` says. */
  async setGroupConcurrency(groupId: string | number, concurrency: number): Promise<void> {
    await this.#set(groupId, { maxActive: checkGroupConcurrency(concurrency) });
  }

  /** Returns the group's own concurrency; null if it has none. */
  async getGroupConcurrency(groupId: string | number): Promise<number | null> {
    return (await this.#group(groupId)).maxActive ?? null;
  }

  async removeGroupConcurrency(groupId: string | number): Promise<void> {
    await this.#set(groupId, { maxActive: null });
  }

  /** Lets at most `max` jobs of the group start within `duration` ms, instead of as many as the worker option `group` says. */
  async setGroupRateLimit(groupId: string | number, max: number, duration: number): Promise<void> {
    await this.#set(groupId, { rate: checkGroupRate(max, duration) });
  }

  /** Returns the group's own rate limit; null if it has none. */
  async getGroupRateLimit(groupId: string | number): Promise<GroupRateLimit | null> {
    const { rate } = await this.#group(groupId);
    return rate === undefined ? null : { max: rate.max, duration: rate.durationMs };
  }

  async removeGroupRateLimit(groupId: string | number): Promise<void> {
    await this.#set(groupId, { rate: null });
  }

  /** No job of the group starts for this many ms from now. 0 ends this, and the current window of a rate limit. */
  async rateLimitGroup(groupId: string | number, expireTimeMs: number): Promise<void> {
    await this.#set(groupId, { blockedMs: checkInteger('expireTimeMs', expireTimeMs, { max: MAX_DELAY_MS }) });
  }

  /** Returns the milliseconds for which the group is rate limited; -2 if it is not. */
  async getGroupRateLimitTtl(groupId: string | number): Promise<number> {
    return (await this.#group(groupId)).limitedMs ?? NO_LIMIT;
  }

  /** No job of the group starts until `resumeGroup`. Running jobs go on. The group keeps its limits. */
  async pauseGroup(groupId: string | number): Promise<void> {
    await this.#set(groupId, { paused: true });
  }

  async resumeGroup(groupId: string | number): Promise<void> {
    await this.#set(groupId, { paused: false });
  }

  async isGroupPaused(groupId: string | number): Promise<boolean> {
    return (await this.#group(groupId)).paused;
  }

  /** Returns the groups from `start` to `end`, inclusive, in the order of their ids. -1 is the last. */
  async getGroups(start = 0, end = 99): Promise<GroupStatus[]> {
    checkInteger('start', start);
    checkInteger('end', end, { min: -1 });
    const last = end === -1 ? Number.POSITIVE_INFINITY : end;
    const found: GroupStatus[] = [];
    let position = 0;
    for await (const { groups, rules } of this.#pages(last + 1)) {
      for (const group of groups) {
        if (position >= start && position <= last) found.push(statusOf(group, rules));
        position += 1;
      }
    }
    return found;
  }

  /** Returns the number of groups that have waiting or active jobs, or settings of their own. It reads them all, in pages. */
  async getGroupsCount(): Promise<number> {
    let count = 0;
    for await (const { groups } of this.#pages(Number.POSITIVE_INFINITY)) count += groups.length;
    return count;
  }

  /** Returns the waiting jobs of a group from `start` to `end`, inclusive, in the order in which they start. -1 is the last. */
  async getGroupJobs(groupId: string | number, start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    const range = { min: Number.MIN_SAFE_INTEGER };
    const query = { start: checkInteger('start', start, range), end: checkInteger('end', end, range), asc: true };
    const { stored } = this[JOB_CONTEXT];
    const records = await readGroup(await this.store, stored, { group: checkGroupId(groupId), ...query });
    return records.map((record) => new Job(this[JOB_CONTEXT], record) as JobOf<T, R, N>);
  }

  /** Returns the number of waiting jobs of a group. */
  async getGroupJobsCount(groupId: string | number): Promise<number> {
    return (await this.#group(groupId)).waiting ?? 0;
  }

  async getGroupActiveCount(groupId: string | number): Promise<number> {
    return (await this.#group(groupId)).active;
  }

  async #set(groupId: string | number, settings: Omit<GroupSettings, 'key'>): Promise<void> {
    const key = checkGroupId(groupId);
    await (await this.store).configure(this[JOB_CONTEXT].stored, { group: { key, ...settings } });
  }

  async #group(groupId: string | number): Promise<GroupInfo> {
    const key = checkGroupId(groupId);
    const { groups } = await (await this.store).status(this[JOB_CONTEXT].stored, { groups: { keys: [key] } });
    return groups?.groups[0] ?? { key, paused: false, active: 0 };
  }

  /** Yields pages of groups until `most` groups were read. */
  async *#pages(most: number): AsyncGenerator<{ groups: GroupInfo[]; rules: GroupRules }> {
    const store = await this.store;
    let after: string | undefined;
    for (let left = most; left > 0; left -= PAGE) {
      const limit = Math.min(PAGE, left);
      const query = { limit, ...(after !== undefined && { after }) };
      const { groups: found } = await store.status(this[JOB_CONTEXT].stored, { groups: query });
      const { groups = [], rules = {} } = found ?? {};
      yield { groups, rules };
      if (groups.length < limit) return;
      after = groups.at(-1)?.key;
    }
  }
}

function statusOf({ key, paused, active, maxActive, limitedMs }: GroupInfo, rules: GroupRules): GroupStatus {
  const most = maxActive ?? rules.maxActive ?? Number.POSITIVE_INFINITY;
  const status = paused ? 'paused' : active >= most ? 'maxed' : limitedMs !== undefined ? 'limited' : 'waiting';
  return { id: key, status, active };
}
