// How figures are written.
import { spread } from '../statistics.mjs';

export function show(value) {
  if (Number.isInteger(value)) return value.toLocaleString('en-US');
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3);
}

export function showMedian({ values, beyond }) {
  return `${beyond ? '> ' : ''}${show(spread(values).median)}`;
}

export function showSpread({ values }) {
  const { low, high } = spread(values);
  return values.length === 1 ? '' : `(${show(low)} … ${show(high)})`;
}

export function nameOf({ label, package: name }, versions) {
  return name === undefined || versions[name] === undefined ? label : `${label} ${versions[name]}`;
}

export function headline({ machine: { cpu, cores, memoryGiB, system }, versions, rounds, date, command }) {
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${cores} × ${cpu}, ${memoryGiB} GiB, ${system}; ${date}; median of ${rounds} (lowest … highest)`,
    named.join(', '),
    command,
  ];
}

/** What a backlog of kept jobs is for those that keep nothing. */
export function aboutKept({ rows }) {
  const backlogs = rows.filter(({ what }) => what.startsWith('backlog,')).flatMap(({ contestants }) => contestants);
  const names = [...new Set(backlogs.filter(({ removes }) => removes === 'always').map(({ label }) => label))];
  if (names.length === 0) return [];
  return [`Always removed, also in lines without "removed": the finished jobs of ${names.join(', ')}.`];
}
