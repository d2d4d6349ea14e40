// The curve as text: a row for every few minutes, a line of bars and a verdict for each column.
const ROWS = 15;
const BARS = '▁▂▃▄▅▆▇█';
const NONE = '–';

const defined = (list) => list.filter((value) => value !== undefined);
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

export function curve(samples, columns, verdicts, ms) {
  const rows = Array.from({ length: ROWS }, (_, row) => {
    const within = samples.filter((sample) => Math.min(ROWS - 1, Math.floor((ROWS * sample.ms) / ms)) === row);
    return { minutes: ((row + 1) * ms) / ROWS / 60_000, of: (name) => median(defined(within.map(({ values }) => values[name]))) };
  });
  const names = [...columns.keys()];
  return [
    '',
    ...tables(names).flatMap((some) => [...table(rows, some, columns), '']),
    ...names.map((name) => verdictLine(name, columns.get(name), verdicts.get(name), rows)),
  ].join('\n');
}

/** Those of a process side by side, then those of the next. */
function tables(names) {
  const heads = ['worker', 'producer'];
  const of = (head) => names.filter((name) => name.startsWith(`${head} `));
  return [...heads.map(of), names.filter((name) => !heads.some((head) => name.startsWith(`${head} `)))];
}

function table(rows, names, columns) {
  const titles = names.map((name) => [name, columns.get(name).unit].filter(Boolean).join(' '));
  const cells = (values) => values.map((value, index) => value.padStart(Math.max(8, titles[index].length))).join('  ');
  return [
    `minutes  ${cells(titles)}`,
    ...rows.map(({ minutes, of }) => {
      const values = names.map((name) => (of(name) === undefined ? NONE : columns.get(name).shown(of(name))));
      return `${minutes.toFixed(1).padStart(7)}  ${cells(values)}`;
    }),
  ];
}

function verdictLine(name, { shown, unit }, { before, after, most, flat }, rows) {
  const values = rows.map(({ of }) => of(name));
  const numbers = flat === undefined ? 'no samples' : `${shown(before)} → ${shown(after)} ${unit} (at most ${shown(most)})`;
  const said = flat === true ? 'flat' : flat === false ? 'NOT FLAT' : 'NOT KNOWN';
  return `${name.padEnd(21)} ${bars(values)}  ${said.padEnd(9)} ${numbers}`;
}

function bars(values) {
  const [least, most] = [Math.min(...defined(values)), Math.max(...defined(values))];
  // The floor is never above half of the top: noise shall not look like a rise.
  const floor = Math.min(least, most / 2);
  const bar = (value) => BARS[Math.min(BARS.length - 1, Math.floor(((value - floor) / (most - floor || 1)) * BARS.length))];
  return values.map((value) => (value === undefined ? ' ' : bar(value))).join('');
}
