// A step whose record was acknowledged is not done again by a later run, its key is the same on every run, and a job does not begin again
// after a cancel of it was acknowledged.
import { LOCK_MS } from '../lock-times.mjs';

/** A job that was granted before the cancel may begin for as long as its lock lasts. */
const GRANTED_BEFORE_MS = LOCK_MS + 1000;

export function judgeSteps(entries, holds) {
  return [...doneAgain(entries), ...otherKeys(entries), ...ranAfterCancel(entries, holds)];
}

function effectsOf(entries) {
  return entries.filter(({ event }) => event === 'step');
}

function doneAgain(entries) {
  const recorded = new Map();
  for (const entry of entries) {
    const key = `${entry.id} ${entry.name}`;
    if (entry.event === 'step recorded' && !recorded.has(key)) recorded.set(key, entry);
  }
  return effectsOf(entries).flatMap(({ id, name, fence, at, who }) => {
    const record = recorded.get(`${id} ${name}`);
    // A run with a smaller fence has lost its job, and cannot know.
    if (record === undefined || record.fence >= fence || record.at >= at) return [];
    const text = `${who} did ${name} of ${id} (fence ${fence}), which ${record.who} had recorded (fence ${record.fence})`;
    const concerns = { ids: [id], fences: [record.fence, fence], who: [who, record.who], from: record.at, to: at };
    return [{ rule: 'step done again', text, at: record.at, concerns }];
  });
}

function otherKeys(entries) {
  const keys = new Map();
  return effectsOf(entries).flatMap(({ id, name, key, fence, at, who }) => {
    const known = keys.get(`${id} ${name}`) ?? key;
    keys.set(`${id} ${name}`, known);
    if (known === key) return [];
    const text = `${name} of ${id} had the key ${known}, and has ${key}`;
    return [{ rule: 'step with two keys', text, at, concerns: { ids: [id], fences: [fence], who: [who], from: at, to: at } }];
  });
}

function ranAfterCancel(entries, holds) {
  const deadlines = new Map();
  const bound = (id, at) => deadlines.set(id, Math.min(at, deadlines.get(id) ?? Number.POSITIVE_INFINITY));
  for (const { event, id, at } of entries) {
    if (event === 'cancelled') bound(id, at + GRANTED_BEFORE_MS);
    if (event === 'cancelled, ended') bound(id, at);
  }
  return holds.flatMap(({ things, fence, at, who }) => {
    const id = things[0].startsWith('job:') ? things[0].slice('job:'.length) : undefined;
    if (!(at > deadlines.get(id))) return [];
    const text = `${who} began ${id} (fence ${fence}), which was cancelled`;
    return [{ rule: 'ran after its cancel', text, at, concerns: { ids: [id], fences: [fence], who: [who], from: at, to: at } }];
  });
}

export function countSteps(entries) {
  const effects = effectsOf(entries);
  const different = new Set(effects.map(({ id, name }) => `${id} ${name}`)).size;
  const cancels = entries.filter(({ event }) => event === 'cancelled').length;
  return { done: effects.length, again: effects.length - different, cancels };
}
