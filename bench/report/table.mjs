// The table in the terminal: for every line of every store Holdfast, its peers and the raw limit, how many times as good Holdfast is, and
// whether a target is met.
import { aboutKept, headline, nameOf, show, showMedian, showSpread } from './figures.mjs';
import { advantage, judge } from './targets.mjs';

export function printTable(report) {
  for (const line of headline(report)) console.log(line);
  for (const store of new Set(report.rows.map((row) => row.store))) {
    console.log(`\n${store.toUpperCase()}`);
    for (const row of report.rows.filter((each) => each.store === store)) printRow(row, report);
  }
  for (const line of aboutKept(report)) console.log(`\n${line}`);
  for (const { measurement, store, contestant, message } of report.failures)
    console.log(`\nnot measured: ${measurement} on ${store}, ${contestant}: ${message}`);
}

function printRow(row, report) {
  const ours = row.contestants.find(({ id }) => id === 'holdfast');
  const verdicts = judge(row, report);
  console.log(`  ${row.what} [${row.unit}]`);
  for (const contestant of row.contestants) {
    const ratio = ours === undefined || contestant.kind === 'ours' ? undefined : advantage(row.better, ours, contestant);
    const columns = [
      nameOf(contestant, report.versions).padEnd(30),
      showMedian(contestant).padStart(11),
      showSpread(contestant).padEnd(24),
      (ratio === undefined || !Number.isFinite(ratio) ? '' : `${show(ratio)} ×`).padStart(9),
      verdicts
        .filter((verdict) => verdict.contestant === contestant.id)
        .map(({ text }) => text)
        .join('; '),
    ];
    console.log(`    ${columns.join(' ')}`.trimEnd());
  }
}
