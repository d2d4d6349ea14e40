// What is printed: a line while it runs, and the summary.
import { excerpt } from './judge/excerpt.mjs';

const SHOWN = 5;
const count = (number) => number.toLocaleString('en');

export function progressLine({ ms, faults, current, settled }, settings) {
  const clock = (value) => `${Math.floor(value / 60_000)}:${String(Math.floor((value / 1000) % 60)).padStart(2, '0')}`;
  const now = current.length === 0 ? '' : `, now: ${current.join(', ')}`;
  return `${clock(ms)} of ${clock(settings.ms)}  ${faults} faults, ${count(settled)} jobs finished${now}`;
}

export function summary({ violations, losses, figures }, entries, remarks = []) {
  const begin = entries.find(({ event }) => event === 'begin') ?? {};
  const lines = [
    '',
    `${begin.store}${begin.failover ? ' with failover' : ''}, ${begin.minutes} min, seed ${begin.seed}`,
    ...remarks,
    ...(entries.some(({ event }) => event === 'drained')
      ? []
      : ['It was interrupted: what was not finished by then counts as lost.']),
    ...faultLines(figures.faults),
    ...figureLines(figures),
    ...recoveryLines(figures.recoveries),
  ];
  if (figures.promotions > 0) lines.push(...lossLines(losses, figures));
  lines.push(...violationLines(violations, entries));
  return lines.join('\n');
}

function faultLines(faults) {
  const kinds = Object.entries(faults).toSorted(([, a], [, b]) => b - a);
  const all = kinds.reduce((sum, [, times]) => sum + times, 0);
  return ['', `${count(all)} faults`, ...kinds.map(([kind, times]) => `  ${String(times).padStart(5)}  ${kind}`)];
}

function figureLines(figures) {
  const {
    acknowledged,
    refusedAdds,
    runs,
    terms,
    namedLocks,
    completed,
    failed,
    slots,
    flows,
    steps,
    grouped,
    rated,
    kills,
    told,
    writes,
    refusedWrites,
    left,
    calmMs,
  } = figures;
  return [
    '',
    `jobs          ${count(acknowledged)} acknowledged, ${count(refusedAdds)} calls refused, ${count(runs)} runs, ${count(completed)} completed, ${count(failed)} failed`,
    ...(grouped === 0 ? [] : [`groups        ${count(grouped)} runs`]),
    ...(rated === 0 ? [] : [`rate          ${count(rated)} starts`]),
    ...(slots === 0 ? [] : [`schedule      ${count(slots)} slots`]),
    ...(flows === 0 ? [] : [`flows         ${count(flows)} acknowledged`]),
    ...(steps.done === 0
      ? []
      : [`steps         ${count(steps.done)} done, ${count(steps.again)} of them again, ${count(steps.cancels)} jobs cancelled`]),
    `other locks   ${count(namedLocks)} named locks taken, ${count(terms)} terms of leaders`,
    `owners        ${count(kills)} processes killed, ${count(told)} holders told that their lock was lost`,
    `fenced writes ${count(writes)}, of which ${count(refusedWrites)} of owners of the past were refused`,
    `calm          ${left === 0 ? 'all done' : `${count(left)} jobs left`} ${(calmMs / 1000).toFixed(1)} s after the last fault`,
  ];
}

const NAMES = { job: 'jobs', name: 'named locks', leader: 'leaders' };

function recoveryLines(recoveries) {
  return Object.entries(recoveries).map(([kind, list]) => {
    const at = (part) => `${(list[Math.min(list.length - 1, Math.floor(part * list.length))] / 1000).toFixed(2)} s`;
    const text = list.length === 0 ? 'none' : `${list.length}: median ${at(0.5)}, 95 % ${at(0.95)}, most ${at(1)}`;
    return `kill → next   ${NAMES[kind].padEnd(12)} ${text}`;
  });
}

function lossLines(losses, { promotions, acknowledged }) {
  const rules = groups(losses);
  return [
    '',
    `Lost with the replica's lag, in ${promotions} promotions; no violations, for an asynchronous replica cannot do better:`,
    ...rules.map(
      ([rule, list]) =>
        `  ${String(list.length).padStart(5)}  ${rule}${rule === 'lost' ? ` of ${count(acknowledged)} acknowledged jobs` : ''}`,
    ),
    ...(rules.length === 0 ? ['      nothing'] : []),
  ];
}

function groups(list) {
  const found = new Map();
  for (const one of list) found.set(one.rule, [...(found.get(one.rule) ?? []), one]);
  return [...found];
}

function violationLines(violations, entries) {
  if (violations.length === 0) return ['', 'No violation.'];
  const lines = ['', `${violations.length} violations:`];
  for (const [rule, list] of groups(violations)) lines.push(`  ${String(list.length).padStart(5)}  ${rule}`);
  for (const violation of violations.slice(0, SHOWN)) {
    lines.push('', `${violation.rule}: ${violation.text}`, ...excerpt(entries, violation).map((line) => `  ${line}`));
  }
  if (violations.length > SHOWN)
    lines.push(
      '',
      `… and ${violations.length - SHOWN} more`,
      ...violations.slice(SHOWN, SHOWN + 30).map(({ rule, text }) => `  ${rule}: ${text}`),
    );
  return lines;
}
