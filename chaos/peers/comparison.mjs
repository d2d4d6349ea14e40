// What came of the same play with different queues, side by side: counted, not condemned.
const count = (number) => number.toLocaleString('en');
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;

const ROWS = [
  ['faults', ({ figures }) => Object.values(figures.faults).reduce((sum, times) => sum + times, 0)],
  ['processes killed', ({ figures }) => figures.kills],
  ['jobs acknowledged', ({ figures }) => figures.acknowledged],
  ['calls of add refused', ({ figures }) => figures.refusedAdds],
  ['runs', ({ figures }) => figures.runs],
  ['completed', ({ figures }) => figures.completed],
  ['failed', ({ figures }) => figures.failed],
  ['flows acknowledged', ({ figures }) => figures.flows],
  undefined,
  ['acknowledged jobs lost', rule('lost')],
  ['one add became two jobs', rule('added twice')],
  ['jobs left unfinished', rule('unfinished')],
  ['  … parents that wait for children', waiting],
  ['parents that began before their children', rule('parent before its children')],
  ['children lost before their parents began', rule('child lost before its parent began')],
  ['jobs failed for stalling', rule('failed for no reason')],
  ['two finishes accepted', rule('finished twice')],
  ['finish of an earlier run accepted', rule('stale finish')],
  ['worker told of a finish that is not kept', rule('finish not kept')],
  ['runs that began during another one', ({ figures }) => figures.overlaps],
  ['  … whose owner believed in its lock', rule('two holders')],
  ['late writes elsewhere that took effect', rule('stale write accepted')],
  ['late writes elsewhere refused by fence', ({ figures }) => figures.refusedWrites],
  ['processes that crashed or did not close', (judged) => PROCESS_RULES.reduce((sum, name) => sum + rule(name)(judged), 0)],
  undefined,
  ['jobs of killed workers taken up', ({ figures }) => figures.recoveries.job.length],
  ['kill → next, median', recovery(0.5)],
  ['kill → next, 95 %', recovery(0.95)],
  ['kill → next, most', recovery(1)],
  ['all done after the last fault', ({ figures }) => (figures.left === 0 ? seconds(figures.calmMs) : 'never')],
];
const PROCESS_RULES = ['ended by itself', 'did not close', 'failed to close'];

/** `runs`: [name, judged] each. */
export function comparison(title, runs) {
  const width = Math.max(12, ...runs.map(([name]) => name.length));
  const cells = (values) => values.map((value) => value.padStart(width)).join('  ');
  const label = (text) => text.padEnd(42);
  return [
    '',
    title,
    '',
    `${label('')}${cells(runs.map(([name]) => name))}`,
    ...ROWS.map((row) => {
      if (row === undefined) return '';
      const [text, read] = row;
      return `${label(text)}${cells(runs.map(([, judged]) => shown(read(judged))))}`;
    }),
    '',
    ...faultLines(runs, label, cells),
  ].join('\n');
}

function faultLines(runs, label, cells) {
  const kinds = new Set(runs.flatMap(([, { figures }]) => Object.keys(figures.faults)));
  return [...kinds]
    .toSorted((a, b) => a.localeCompare(b))
    .map((kind) => `${label(kind)}${cells(runs.map(([, { figures }]) => shown(figures.faults[kind] ?? 0)))}`);
}

/** Also what a replica lost that took over. */
function rule(name) {
  return ({ violations, losses }) => [...violations, ...losses].filter((violation) => violation.rule === name).length;
}

function waiting({ violations }) {
  return violations.filter(({ rule: name, text }) => name === 'unfinished' && text.includes('waiting-children')).length;
}

function recovery(part) {
  return ({ figures }) => {
    const list = figures.recoveries.job;
    return list.length === 0 ? 'none' : seconds(list[Math.min(list.length - 1, Math.floor(part * list.length))]);
  };
}

function shown(value) {
  return typeof value === 'number' ? count(value) : value;
}
