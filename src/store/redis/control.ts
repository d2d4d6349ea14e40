// Operator verbs of a queue: configure and forget.
import type { ForgetTarget, GroupRules, GroupSettings, QueueSettings } from '../contract/index.js';
import type { Argument } from './driver/driver.js';
import type { Runner } from './driver/runner.js';
import { freeText } from './record.js';
import type { Engine } from './driver/engine.js';

const REMOVED = -1;

export async function configure({ run }: Engine, queue: string, settings: QueueSettings): Promise<void> {
  const { paused, blockedMs, cap, rate, metrics, groups, group } = settings;
  await run('configure', queue, [
    paused === undefined ? '' : Number(paused),
    blockedMs ?? '',
    (cap === null ? REMOVED : cap?.maxActive) ?? '',
    (rate === null ? REMOVED : rate?.max) ?? '',
    rate?.durationMs ?? '',
    (metrics === null ? REMOVED : metrics?.points) ?? '',
    ...rulesArguments(groups),
    ...groupArguments(group),
  ]);
}

function rulesArguments(rules: GroupRules | null | undefined): Argument[] {
  if (rules === undefined) return ['', '', '', ''];
  return ['=', rules?.maxActive ?? '', rules?.rate?.max ?? '', rules?.rate?.durationMs ?? ''];
}

function groupArguments(group: GroupSettings | undefined): Argument[] {
  if (group === undefined) return ['', '', '', '', '', ''];
  const { key, paused, maxActive, rate, blockedMs } = group;
  return [
    `=${freeText(key)}`,
    paused === undefined ? '' : Number(paused),
    (maxActive === null ? REMOVED : maxActive) ?? '',
    (rate === null ? REMOVED : rate?.max) ?? '',
    rate?.durationMs ?? '',
    blockedMs ?? '',
  ];
}

export async function forget({ run }: Engine, queue: string, what: ForgetTarget): Promise<number> {
  if ('events' in what) return Number(await run('forget', queue, [what.events, 0]));
  if ('deduplication' in what) return forgetEntries(run, queue, what.deduplication, what.ownedBy);
  if ('caller' in what) await run('forget-caller', queue, [what.caller]);
  else if ('all' in what) await forgetAll(run, queue);
  return 0;
}

/** Groups and schedules are forgotten in parts, so that no script blocks Redis. */
async function forgetAll(run: Runner, queue: string): Promise<void> {
  let after = '';
  do after = String(await run('forget-groups', queue, [after]));
  while (after !== '');
  while (Number(await run('forget', queue, [0, 1])) < 0);
}

async function forgetEntries(run: Runner, queue: string, ids: string[], owner: string | undefined): Promise<number> {
  return Number(await run('forget-entries', queue, [owner === undefined ? '' : `=${owner}`, ...ids]));
}
