// For vitest's globalSetup: how busy the machine is when the run begins, for all of its test files.
import { measurePace, PACE_VARIABLE } from './pace.js';

export default function setup(): void {
  process.env[PACE_VARIABLE] ??= String(measurePace());
}
