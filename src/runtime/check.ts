// Checks of user input. Each error names the option, shows the value and says which values are valid. 0 is a value, not "unset".
import { HoldfastError } from '../errors.js';

/** The longest delay that a Node timer takes: about 24.8 days. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
/** The longest delay of a job: a hundred years. A longer delay is a mistake in the unit. */
export const MAX_DELAY_MS = 100 * 365 * 24 * 3600 * 1000;

const UNKEEPABLE = /[\0\ud800-\udfff]/u;

export interface IntegerRange {
  min?: number;
  max?: number;
}

export function checkInteger(
  option: string,
  value: unknown,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: IntegerRange = {},
): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw invalidOption(option, value, `a whole number from ${min} to ${max}`);
  }
  return value;
}

export function checkBoolean(option: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidOption(option, value, 'true or false');
  return value;
}

/** Returns the text if every store can keep it unchanged: no NUL, no halves of surrogate pairs. Throws INVALID_OPTION otherwise. */
export function checkText(option: string, value: unknown, max: number): string {
  if (typeof value === 'string' && value !== '' && value.length <= max && !UNKEEPABLE.test(value)) return value;
  throw invalidOption(option, value, `a string of 1 to ${max} characters, without NUL and broken unicode`);
}

/** Returns free text in a form that every store can keep, cut to `max` characters with a note of how many are missing. */
export function keepable(text: string, max: number): string {
  const cut = text.length > max ? `${text.slice(0, max)}… (${text.length - max} more characters)` : text;
  return UNKEEPABLE.test(cut) ? cut.replace(/[\0\ud800-\udfff]/gu, '\ufffd') : cut;
}

export function invalidOption(option: string, value: unknown, wanted: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${option} must be ${wanted}, but it is ${show(value)}.`, { option });
}

export function show(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? `${JSON.stringify(value.slice(0, 60))}…` : JSON.stringify(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  return Array.isArray(value) ? 'an array' : 'an object';
}
