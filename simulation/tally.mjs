// What many runs came to.

export class Tally {
  runs = 0;
  steps = 0;
  simulatedMs = 0;
  faults = {};
  violations = [];

  count(seed, { violation, steps, simulatedMs, faults }) {
    this.runs += 1;
    this.steps += steps;
    this.simulatedMs += simulatedMs;
    for (const [kind, times] of Object.entries(faults)) this.faults[kind] = (this.faults[kind] ?? 0) + times;
    if (violation !== undefined) this.violations.push({ seed, violation });
  }

  get progress() {
    return `${number(this.runs)} runs, ${number(this.steps)} steps, ${number(this.faultsDone)} faults, ${this.violations.length} violations`;
  }

  get faultsDone() {
    return Object.values(this.faults).reduce((sum, times) => sum + times, 0);
  }

  summary(elapsedMs) {
    const kinds = Object.entries(this.faults).sort(([, a], [, b]) => b - a);
    const seeds = this.violations.map(({ seed }) => seed).join(', ');
    return [
      `runs        ${number(this.runs)}, ${(elapsedMs / this.runs).toFixed(1)} ms each`,
      `steps       ${number(this.steps)}, with the invariants looked at after each`,
      `simulated   ${(this.simulatedMs / 3_600_000).toFixed(1)} hours`,
      `faults      ${number(this.faultsDone)}`,
      ...kinds.map(([kind, times]) => `            ${number(times).padStart(9)}  ${kind}`),
      `violations  ${this.violations.length}${seeds === '' ? '' : `: seed ${seeds}`}`,
    ].join('\n');
  }
}

function number(value) {
  return value.toLocaleString('en');
}
