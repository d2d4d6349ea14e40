// Detects whether a test has replaced the clock or the timers of this process. If so, delays of the memory store follow the fake ones:
// a test that moves its clock by an hour sees a job run that was delayed by an hour.
import { setTimeout as genuineSetTimeout } from './timers.js';

let known: { now: () => number; faked: boolean } | undefined;

/** Returns the time of the fake clock, in ms since the epoch; undefined when `Date` is the genuine one. */
export function fakedNow(): number | undefined {
  const { now } = Date;
  if (known?.now !== now) known = { now, faked: !/\[native code\]/.test(Function.prototype.toString.call(now)) };
  return known.faked ? Date.now() : undefined;
}

/** Calls back after `ms` of the fake timers; undefined when they are the genuine ones. Returns a function that stops it. */
export function onFakeTimer(ms: number, call: () => void): (() => void) | undefined {
  const { setTimeout: start, clearTimeout: stop } = globalThis;
  if (start === genuineSetTimeout) return undefined;
  const timer = start(call, ms);
  return () => stop(timer);
}
