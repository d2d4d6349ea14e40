// Reads groups (lua/groups.lua), for the status of a queue.
import type { GroupInfo, GroupQuery, GroupRules, GroupsFound } from '../../contract/index.js';
import type { Runner } from '../driver/runner.js';
import { freeText } from '../record.js';

type Raw = [rules: number[], next: string, groups: RawGroup[]];
type RawGroup = [
  key: string,
  active: number,
  paused: string,
  maxActive: string,
  rateMax: string,
  rateMs: string,
  limitedMs: number,
  waiting: number,
];

/** Groups that one script reads. */
const READ_AT_ONCE = 250;

export async function findGroups(run: Runner, queue: string, query: GroupQuery): Promise<GroupsFound> {
  return 'keys' in query ? byKey(run, queue, query.keys) : page(run, queue, query.limit, query.after);
}

async function byKey(run: Runner, queue: string, keys: string[]): Promise<GroupsFound> {
  const found: GroupsFound = { groups: [] };
  let first = 0;
  do {
    const part = keys.slice(first, first + READ_AT_ONCE);
    const [rules, , groups] = (await run('groups', queue, ['k', ...part.map(freeText)])) as Raw;
    addRules(found, rules);
    for (const group of groups) found.groups.push({ ...infoOf(group), waiting: group[7] });
    first += READ_AT_ONCE;
  } while (first < keys.length);
  return found;
}

async function page(run: Runner, queue: string, limit: number, start: string | undefined): Promise<GroupsFound> {
  const found: GroupsFound = { groups: [] };
  let after = start === undefined ? '' : `=${freeText(start)}`;
  do {
    const most = Math.min(READ_AT_ONCE, limit - found.groups.length);
    const [rules, next, groups] = (await run('groups', queue, ['p', most, after])) as Raw;
    addRules(found, rules);
    for (const group of groups) found.groups.push(infoOf(group));
    after = next;
  } while (after !== '' && found.groups.length < limit);
  return found;
}

function addRules(found: GroupsFound, [active = 0, max = 0, durationMs = 0]: number[]): void {
  if (active === 0 && max === 0) return;
  const rules: GroupRules = {};
  if (active > 0) rules.maxActive = active - 1;
  if (max > 0) rules.rate = { max: max - 1, durationMs };
  found.rules = rules;
}

function infoOf([key, active, paused, maxActive, rateMax, rateMs, limitedMs]: RawGroup): GroupInfo {
  const info: GroupInfo = { key, paused: paused === '1', active };
  if (maxActive !== '') info.maxActive = Number(maxActive);
  if (rateMax !== '') info.rate = { max: Number(rateMax), durationMs: Number(rateMs) };
  if (limitedMs > 0) info.limitedMs = limitedMs;
  return info;
}
