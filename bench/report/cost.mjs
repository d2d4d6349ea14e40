// What a queue costs you: jobs a second for your handler time, on each store with default options. Of a run with `--cost`.
import { headline, showMedian } from './figures.mjs';
import { between, STORE_NAMES, storesOf, table } from './markdown.mjs';

export function printCost(report) {
  console.log(`\n${costTable(report).join('\n')}`);
}

export async function writeCost(report) {
  const [machine, versions, command] = headline(report);
  const about = `${machine.replace(' (lowest … highest)', '')}. \`${command}\``;
  await between('docs/benchmarks.md', [about, '', `${versions}.`, '', ...costTable(report)]);
}

/** A row for each handler time, a column for each store, and in a cell a figure for each concurrency. */
function costTable(report) {
  const backlogs = report.rows.flatMap((row) => {
    const found = /^backlog, concurrency (\d+)(?:, handler (\d+) ms)?$/.exec(row.what);
    return found === null ? [] : [{ ...row, concurrency: Number(found[1]), handlerMs: Number(found[2] ?? 0) }];
  });
  const stores = storesOf(report);
  const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);
  const concurrencies = distinct(backlogs.map(({ concurrency }) => concurrency));
  const perSecond = (store, handlerMs, concurrency) => {
    const row = backlogs.find((one) => one.store === store && one.handlerMs === handlerMs && one.concurrency === concurrency);
    const ours = row?.contestants.find(({ id }) => id === 'holdfast');
    return ours === undefined ? '–' : showMedian(ours);
  };
  const rows = distinct(backlogs.map(({ handlerMs }) => handlerMs)).map((handlerMs) => {
    const alone = (concurrency) => (handlerMs === 0 ? '–' : ((concurrency * 1000) / handlerMs).toLocaleString('en-US'));
    return [
      `${handlerMs} ms`,
      concurrencies.map(alone).join(' / '),
      ...stores.map((store) => concurrencies.map((concurrency) => perSecond(store, handlerMs, concurrency)).join(' / ')),
    ];
  });
  return table(['handler', 'without a queue', ...stores.map((store) => STORE_NAMES[store])], rows);
}
