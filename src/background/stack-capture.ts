// Takes the stack of the main thread while its event loop is blocked, from the lock thread: through the inspector of Node, which pauses the
// main thread between two statements, says where it is, and lets it go on. Nothing of this runs in the main thread, and no port is
// opened. The session is open for some milliseconds: a session that stays open would keep the process from ending.
import type { Debugger, Session } from 'node:inspector';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toError } from '../errors.js';
import type { Clock } from '../runtime/clock.js';
import { between, now, type Moment } from '../session/trust.js';

/** The most stacks that are taken in an hour. Each costs the main thread some milliseconds. */
export const MAX_PER_HOUR = 10;
const HOUR_MS = 3_600_000;
/** A main thread that runs JavaScript stops within this time, in ms, unless the machine is busy. */
const QUICK_MS = 100;
const MAX_FRAMES = 20;
const NATIVE = 'inside a native call';

type Inspector = typeof import('node:inspector');

/** Returns Node's inspector; undefined where the runtime has none. */
export function inspectorOf(): Inspector | undefined {
  try {
    return process.getBuiltinModule('node:inspector');
  } catch {
    return undefined;
  }
}

interface Capture {
  session: Session;
  askedAt: Moment;
  pausedAt?: Moment;
  frames: Frame[];
}

interface Frame {
  text: string;
  /** Part of the program: neither of Node nor of this package. */
  isProgram: boolean;
}

/** The chunks of this package (scripts/bundle.mjs), if it is not part of a bundle. */
const OWN_FILES = typeof __filename === 'string' ? ['base.js', 'core.js'].map((chunk) => join(dirname(__filename), chunk)) : [];

export class StackCapture {
  readonly #clock: Clock;
  #capture: Capture | undefined;
  /** Why no stack was taken. */
  #refusal = '';
  #taken: Moment[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Asks for the stack of the main thread. Returns at once. `refusal`: why it must not be asked for. */
  begin(refusal: string | undefined): void {
    this.stop();
    this.#capture = undefined;
    const askedAt = now(this.#clock);
    this.#taken = this.#taken.filter((at) => between(at, askedAt) < HOUR_MS);
    const isEnough = this.#taken.length >= MAX_PER_HOUR;
    this.#refusal = refusal ?? (isEnough ? `${MAX_PER_HOUR} stacks were taken within an hour` : '');
    if (this.#refusal !== '') return;
    this.#taken.push(askedAt);
    try {
      this.#ask(askedAt);
    } catch (error) {
      this.#refusal = toError(error).message;
      this.stop();
    }
  }

  /** The block is over. Returns the stack as text; in parentheses, why there is none. */
  end(endedAt: Moment): string {
    this.stop();
    const capture = this.#capture;
    this.#capture = undefined;
    if (this.#refusal !== '') return `(not taken: ${this.#refusal})`;
    if (capture === undefined) return '(not taken: the block was over before)';
    const { askedAt, pausedAt, frames } = capture;
    const after = pausedAt === undefined ? -1 : between(pausedAt, endedAt);
    if (pausedAt === undefined || after < 0 || frames.length === 0) return `(${NATIVE})`;
    const text = frames.map((frame) => frame.text).join('\n');
    // The main thread stops when it runs JavaScript again. If that took long and the block was soon over, the stack is that of what
    // came after the call.
    const waited = between(askedAt, pausedAt);
    if (waited <= QUICK_MS || after > Math.max(2 * QUICK_MS, waited)) return text;
    return frames.some(({ isProgram }) => isProgram)
      ? `(${NATIVE}, which had returned when the stack was taken)\n${text}`
      : `(${NATIVE})`;
  }

  #ask(askedAt: Moment): void {
    const inspector = inspectorOf();
    if (inspector === undefined) throw new Error('this runtime has no inspector');
    const session = new inspector.Session();
    const capture: Capture = { session, askedAt, frames: [] };
    this.#capture = capture;
    const urls = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => urls.set(scriptId, url));
    session.on('Debugger.paused', ({ params: { callFrames } }) => {
      capture.pausedAt = now(this.#clock);
      capture.frames = withoutCallers(callFrames.map((frame) => frameOf(frame, urls))).slice(0, MAX_FRAMES);
      session.post('Debugger.resume', () => session.disconnect());
    });
    session.connectToMainThread();
    session.post('Debugger.enable', {}, (error) => {
      if (error === null && this.#capture === capture) session.post('Debugger.pause');
    });
  }

  /** Closes the session. A main thread that is paused at this moment goes on. */
  stop(): void {
    this.#capture?.session.disconnect();
  }
}

function frameOf({ functionName, location }: Debugger.CallFrame, urls: ReadonlyMap<string, string>): Frame {
  const url = urls.get(location.scriptId) ?? '';
  const file = url.startsWith('file:') ? fileURLToPath(url) : url === '' ? '<anonymous>' : url;
  const place = `${file}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`;
  const text = functionName === '' ? `    at ${place}` : `    at ${functionName} (${place})`;
  return { text, isProgram: url !== '' && !url.startsWith('node:') && !OWN_FILES.includes(file) };
}

/** Leaves out what called the program: the lines of the worker and of Node are the same each time. */
function withoutCallers(frames: Frame[]): Frame[] {
  const last = frames.findLastIndex(({ isProgram }) => isProgram);
  return last === -1 ? frames : frames.slice(0, last + 1);
}
