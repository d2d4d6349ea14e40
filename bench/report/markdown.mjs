// Puts the figures of a run between the markers of README.md (the main lines) and docs/contributing/benchmark-figures.md (all of them), with the chart.
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chart } from './chart.mjs';
import { aboutKept, headline, nameOf, show, showMedian, showSpread } from './figures.mjs';
import { advantage, bestPeer, judge } from './targets.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CHART = 'docs/benchmarks.svg';
const BEGIN = '<!-- bench: this part is written by the benchmark -->';
const END = '<!-- /bench -->';
const DIRECTIONS =
  '↑ higher is better, ↓ lower is better. In brackets: how many times as good as the best other queue on that store; above 1, Holdfast is ahead.';
export const STORE_NAMES = { redis: 'Redis', postgres: 'PostgreSQL', sqlite: 'SQLite', memory: 'memory' };
const MAIN_LINES = [
  ...['add, one by one', 'add, 1,000 in flight', 'add, bulks of 1,000'],
  ...['backlog, concurrency 1', 'backlog, concurrency 10', 'backlog, concurrency 100'],
  ...['backlog, concurrency 1, removed', 'backlog, concurrency 10, removed', 'backlog, concurrency 100, removed'],
  ...['add to start, idle, two processes, p50', 'add to start, idle, two processes, p99'],
  ...['SIGKILL to start elsewhere', 'ran twice of 10, blocked loop'],
];

export async function writeTables(report) {
  const image = (path) => [`![Jobs a second on each store](${path})`, ''];
  await writeFile(join(root, CHART), chart(report));
  await between('README.md', [...image(CHART), ...summary(report)]);
  await between('docs/contributing/benchmark-figures.md', [...image('../benchmarks.svg'), ...everything(report)]);
}

/** One column a store: our figure, and how many times as good as the best peer on it. */
function summary(report) {
  const stores = storesOf(report);
  const [machine, versions, command] = headline(report);
  const rows = MAIN_LINES.flatMap((what) => {
    const cells = stores.map((store) => report.rows.find((row) => row.store === store && row.what === what));
    const known = cells.find((row) => row !== undefined);
    const arrow = known?.better === 'more' ? '↑' : '↓';
    return known === undefined ? [] : [[`${arrow} ${what}, ${known.unit}`, ...cells.map((row) => summaryCell(row))]];
  });
  return [
    `${machine.replace(' (lowest … highest)', '')}. \`${command}\``,
    '',
    DIRECTIONS,
    '',
    ...table(['', ...stores.map((store) => STORE_NAMES[store])], rows),
    '',
    `${versions}.`,
  ];
}

function summaryCell(row) {
  const ours = row?.contestants.find(({ id }) => id === 'holdfast');
  if (ours === undefined) return '–';
  const peer = bestPeer(row);
  const ratio = peer === undefined ? undefined : advantage(row.better, ours, peer);
  if (ratio === undefined) return showMedian(ours);
  return Number.isFinite(ratio)
    ? `${showMedian(ours)} (${show(ratio)} × ${peer.label})`
    : `${showMedian(ours)} (${peer.label}: ${showMedian(peer)})`;
}

/** A table a store, a row for each contestant. */
function everything(report) {
  const [machine, versions, command] = headline(report);
  const parts = storesOf(report).map((store) => {
    const rows = report.rows
      .filter((row) => row.store === store)
      .flatMap((row) => row.contestants.map((contestant, index) => fullRow(row, contestant, index, report)));
    const heads = ['', '', 'median', 'lowest … highest', 'Holdfast is', 'target'];
    return [`### ${STORE_NAMES[store]}`, '', ...table(heads, rows), ''];
  });
  const kept = aboutKept(report).flatMap((line) => [line, '']);
  return [`${machine}. \`${command}\`${inParts(report)}`, '', `${versions}.`, '', ...kept, ...parts.flat()].slice(0, -1);
}

function inParts({ parts = [] }) {
  return parts.length === 0 ? '' : `, in ${parts.length} runs:\n\n${parts.map((command) => `- \`${command}\``).join('\n')}`;
}

function fullRow(row, contestant, index, report) {
  const ours = row.contestants.find(({ id }) => id === 'holdfast');
  const ratio = ours === undefined || contestant.kind === 'ours' ? undefined : advantage(row.better, ours, contestant);
  const verdicts = judge(row, report).filter((verdict) => verdict.contestant === contestant.id);
  return [
    index === 0 ? `${row.what}, ${row.unit}` : '',
    nameOf(contestant, report.versions),
    showMedian(contestant),
    showSpread(contestant).replaceAll(/[()]/g, ''),
    ratio === undefined || !Number.isFinite(ratio) ? '' : `${show(ratio)} ×`,
    verdicts.map(({ text }) => text.replace(/^(.*: )?target /, '$1')).join('; '),
  ];
}

export function storesOf({ rows }) {
  return [...new Set(rows.map(({ store }) => store))];
}

export function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

export async function between(file, lines) {
  const path = join(root, file);
  const text = await readFile(path, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`${file} has no place for the figures: put ${BEGIN} and ${END} into it.`);
  await writeFile(path, `${text.slice(0, begin + BEGIN.length)}\n\n${lines.join('\n')}\n\n${text.slice(end)}`);
}
