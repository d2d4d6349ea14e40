// What a process said on stderr, apart from the warning that another process was killed: in these tests that is no complaint.
const EXPECTED = /^(\(node:\d+\) \[HOLDFAST_JOBS_LOST\] .*|\(Use `node --trace-warnings .*)\n?/gm;

/** How a process ended, for a list of complaints: a signal, or its code and what it said. */
export function endOf(code: number | null, signal: NodeJS.Signals | null, stderr: string): string {
  const said = stderr.replace(EXPECTED, '');
  return signal ?? `code ${code}${said === '' ? '' : ` and said: ${said}`}`;
}
