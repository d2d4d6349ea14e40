// Several runs as one report, so that a long measuring can be made in parts. A line that two of them have is that of the later one.

export function join(reports) {
  const rows = new Map(reports.flatMap((report) => report.rows).map((row) => [`${row.store}\0${row.what}`, row]));
  const counts = [...new Set(reports.map(({ rounds }) => rounds))].sort((a, b) => a - b);
  const commands = [...new Set(reports.map(({ command }) => command))];
  return {
    ...reports.at(-1),
    versions: Object.assign({}, ...reports.map(({ versions }) => versions)),
    command: commands.length === 1 ? commands[0] : 'npm run bench',
    parts: commands.length === 1 ? [] : commands,
    rounds: counts.join(' or '),
    rows: [...rows.values()],
    failures: reports.flatMap(({ failures }) => failures),
    judged: reports.every(({ judged }) => judged),
  };
}
