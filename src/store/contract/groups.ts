// Groups: jobs that take turns by group, under limits of each group.

/*
 * The rule of turns.
 * - A job with `group` waits in the list of its group, by priority and then front to back. All other jobs are one more member of the
 *   line, under the key ''. Lock keys apply among them as in a queue without groups.
 * - The store counts turns per queue. Each member in line has the number of a turn. A claim serves the members with room in the order of
 *   (number, key), keys by their UTF-8 bytes. It takes the first job of the first member, which gets the number of this new turn. Then the
 *   claim looks for the first member again, until it has enough jobs.
 * - A group comes into line when a job of it begins to wait and the group is not in line. It gets the number of the last turn, so a group
 *   that comes back gains nothing. It stays in line, with its number, while it has no room, and also if other calls take its jobs away.
 *   A group goes out of line when a claim takes its last waiting job in turn. It also goes out of line when a claim that needs a job looks
 *   for the first group with room, and finds this one without a waiting job.
 * - The member '' is always in line, at first with the number 0. A claim looks for the first group with room, and then compares it with ''.
 *   If there is no such group, the turn of '' does not count. So a queue without groups counts no turns.
 * - A group has room while fewer of its jobs than `maxActive` are active, it is not paused, no block is set, and the window of its rate
 *   has claims left. No claim makes more jobs of a group active than `maxActive` allows. A place is free in the same step in which a job
 *   leaves active, for any reason. A window opens with the first claim that it counts, on the store's clock, as that of a queue does.
 * - A claim by id counts for `maxActive` and in the window. Only `maxActive` and a pause can refuse it. It takes no turn.
 * - A repeated claim returns the same jobs, and takes no turn.
 */

/** The limits of a group. An absent one does not limit. */
export interface GroupRules {
  maxActive?: number;
  /** At most `max` claims per window. */
  rate?: { max: number; durationMs: number };
}

/** Settings of one group. An absent field leaves its setting as it is; null removes the group's own limit, so that of all groups counts. */
export interface GroupSettings {
  key: string;
  /** True: no job of the group is claimed, neither in turn nor by id. */
  paused?: boolean;
  maxActive?: number | null;
  rate?: { max: number; durationMs: number } | null;
  /** Blocks claims in turn for this duration from now; 0 ends the block, and the current window of the rate. */
  blockedMs?: number;
}

/**
 * Groups by their keys, one entry per key, or all groups: up to `limit`, in the order of the UTF-8 bytes of their keys, from the first
 * one after `after` on. Lists the groups that have waiting or active jobs, or settings of their own (pause, `maxActive`, `rate`).
 */
export type GroupQuery = { keys: string[] } | { limit: number; after?: string };

export interface GroupsFound {
  /** The limits of each group that has none of its own, if there are any. */
  rules?: GroupRules;
  groups: GroupInfo[];
}

export interface GroupInfo {
  key: string;
  paused: boolean;
  active: number;
  /** The limits of its own. */
  maxActive?: number;
  rate?: { max: number; durationMs: number };
  /** Set while a block or a used window keeps the group from claims in turn. */
  limitedMs?: number;
  /** The number of waiting jobs, prioritized ones included. Present in a query by keys. */
  waiting?: number;
}
