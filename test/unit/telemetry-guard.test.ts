// Work that throws at once, inside a context manager that misbehaves. Adds and handlers are in test/acceptance/telemetry-errors.test.ts.
import { describe, expect, test } from 'vitest';
import { type ContextManager, type Span, SpanKind, type Telemetry, Tracing } from '../../src/runtime/telemetry.js';

type With = (context: unknown, fn: () => unknown) => unknown;

const fail = (message: string): never => {
  throw new Error(message);
};

function hidden(fn: () => unknown): unknown {
  try {
    return fn();
  } catch {
    return 'hidden';
  }
}

function replaced(fn: () => unknown): unknown {
  try {
    return fn();
  } catch {
    return fail('another error');
  }
}

const WITHS: [string, With, string[]][] = [
  ['passes the error on', (_context, fn) => fn(), []],
  ['passes the error on as a rejection', async (_context, fn) => fn(), []],
  ['hides the error', (_context, fn) => hidden(fn), []],
  ['calls its function again after the error', (_context, fn) => [hidden(fn), fn()], []],
  ['replaces the error', (_context, fn) => replaced(fn), ['another error']],
  ['replaces the error by a rejection', async (_context, fn) => replaced(fn), ['another error']],
];

describe('the error of work that throws reaches its caller, and work runs once, if contextManager.with', () => {
  test.each(WITHS)('%s', async (_title, given, expected) => {
    const span = { setAttributes: () => undefined, setSpanOnContext: () => 'a context' } as unknown as Span;
    const contextManager = { with: given, active: () => 'a context' } as unknown as ContextManager;
    const telemetry: Telemetry = { tracer: { startSpan: () => span }, contextManager };
    const reported: string[] = [];
    const tracing = new Tracing(telemetry, 'work', ({ message }) => reported.push(message));
    const open = tracing.open(SpanKind.PRODUCER, 'add', 'work');
    let runs = 0;
    const work = (): never => {
      runs += 1;
      return fail('no paper');
    };
    expect(() => tracing.within(open, work)).toThrow('no paper');
    await new Promise((resolve) => void setImmediate(resolve));
    expect({ runs, reported }).toEqual({ runs: 1, reported: expected });
  });
});
