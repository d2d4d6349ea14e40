// A reporter for vitest: says every half a minute how far the run is, how long it may still take, and what it waits for.
import { relative } from 'node:path';

const EVERY_MS = 30_000;
/** Unit tests and tests of documents take about a tenth of the time of the other files. */
const LIGHT = { share: 0.1, folders: /\/test\/(?:unit|docs|types|tools)\// };

export class TestProgress {
  #began = 0;
  #weight = 0;
  #done = 0;
  #files = { all: 0, ended: 0 };
  #tests = { passed: 0, failed: 0 };
  #running = new Map();
  #timer;

  onTestRunStart(specifications) {
    this.#began = performance.now();
    this.#files.all = specifications.length;
    this.#weight = specifications.reduce((sum, { moduleId }) => sum + weightOf(moduleId), 0);
    if (specifications.length > 1) this.#timer = setInterval(() => this.#print(), EVERY_MS).unref();
  }

  onTestModuleStart({ moduleId }) {
    this.#running.set(moduleId, performance.now());
  }

  onTestModuleEnd(module) {
    this.#running.delete(module.moduleId);
    this.#files.ended += 1;
    this.#done += weightOf(module.moduleId);
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state in this.#tests) this.#tests[state] += 1;
    }
  }

  onTestRunEnd() {
    clearInterval(this.#timer);
  }

  #print() {
    const time = performance.now();
    const { passed, failed } = this.#tests;
    const left =
      this.#done > 0 ? `about ${clock(((time - this.#began) * (this.#weight - this.#done)) / this.#done)} left` : 'starting';
    const running = [...this.#running].map(([file, since]) => `${relative('test', file)} (${clock(time - since)})`);
    const files = `${this.#files.ended} of ${this.#files.all} files`;
    const tests = `${passed} passed, ${failed} failed so far`;
    console.log(`[${clock(time - this.#began)}] ${files}, ${tests}, ${left}. Running: ${running.join(', ') || 'nothing'}`);
  }
}

function weightOf(file) {
  return LIGHT.folders.test(file) ? LIGHT.share : 1;
}

/** Minutes and seconds. */
function clock(ms) {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
