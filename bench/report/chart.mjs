// The chart for the README: a backlog at concurrency 100, a panel for each store. Drawn by echarts, because it renders SVG without a browser
// or a canvas and brings two packages along, where vega brings thirty.
import { requirePeer } from '../peers.mjs';
import { median } from '../statistics.mjs';
import { nameOf, show } from './figures.mjs';

const WHAT = 'backlog, concurrency 100';
const WIDTH = 860;
const BAR = 26;
const HEAD = 46;
const LABELS = 205;
const COLOURS = { ours: '#2f81f7', peer: '#8b949e', raw: '#d29922' };
/** Text of the chart follows the reader's scheme; the bars are readable on both. */
const STYLE = '<style>text{fill:#1f2328;stroke:none}@media (prefers-color-scheme:dark){text{fill:#e6edf3}}</style>';
const TITLES = { redis: 'Redis', postgres: 'PostgreSQL, fsynced', sqlite: 'SQLite, fsynced', memory: 'memory' };

export function chart({ rows, versions }) {
  const echarts = requirePeer('echarts');
  const panels = rows.filter(({ what }) => what === WHAT);
  if (panels.length === 0) throw new Error(`There is nothing to draw: the run has no line "${WHAT}".`);
  const option = { animation: false, title: [], grid: [], xAxis: [], yAxis: [], series: [] };
  let top = 0;
  for (const [index, row] of panels.entries()) {
    const bars = [...row.contestants].sort((a, b) => median(a.values) - median(b.values));
    const height = bars.length * BAR;
    option.title.push({
      text: `${TITLES[row.store]}: jobs/s at concurrency 100`,
      left: 8,
      top: top + 10,
      textStyle: { fontSize: 14 },
    });
    option.grid.push({ left: LABELS, right: 90, top: top + HEAD, height });
    option.xAxis.push({ gridIndex: index, type: 'value', show: false });
    option.yAxis.push({
      ...{ gridIndex: index, type: 'category', axisLine: { show: false }, axisTick: { show: false } },
      data: bars.map((contestant) => nameOf(contestant, versions)),
    });
    option.series.push({
      ...{ type: 'bar', xAxisIndex: index, yAxisIndex: index, barWidth: BAR - 10 },
      label: { show: true, position: 'right', formatter: ({ value }) => show(value) },
      data: bars.map(({ kind, values }) => ({ value: median(values), itemStyle: { color: COLOURS[kind] } })),
    });
    top += HEAD + height + 8;
  }
  const drawing = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: top + 8 });
  drawing.setOption(option);
  const svg = drawing.renderToSVGString();
  drawing.dispose();
  return svg.replace(/(<svg[^>]*>)/, `$1${STYLE}`).replace(/<rect[^>]*fill="none"[^>]*><\/rect>/, '');
}
