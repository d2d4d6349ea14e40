import { describe, expect, it } from 'vitest';
import { extrasOf, MARK, marksOf, readExtras } from '../../src/store/marks.js';
import { newJob } from '../../src/testing/conformance/samples.js';

describe('marks and extras', () => {
  it('gives a plain job no mark and no extras', () => {
    expect(marksOf(newJob())).toBe(0);
    expect(extrasOf(newJob())).toBeNull();
    expect(marksOf(newJob({ lockKey: 'k', id: 'x', priority: 3 }))).toBe(0);
  });

  it('marks a job with deduplication and keeps its id in the extras', () => {
    const job = newJob({ deduplication: { id: '"a" 😀', ttlMs: 5, extend: true } });
    expect(marksOf(job)).toBe(MARK.unique);
    expect(extrasOf(job)).toBe('{"d":"\\"a\\" 😀"}');
    expect(readExtras(extrasOf(job) ?? '')).toEqual({ deduplicationId: '"a" 😀' });
  });

  it('marks the next job of a schedule and keeps the id of the schedule in the extras', () => {
    const job = newJob({ scheduleId: 'a:b' });
    expect(marksOf(job)).toBe(MARK.next);
    expect(extrasOf(job)).toBe('{"s":"a:b"}');
    expect(readExtras('{"d":"x","s":"a:b"}')).toEqual({ deduplicationId: 'x', scheduleId: 'a:b' });
    expect(marksOf({ ...job, deduplication: { id: 'x' } })).toBe(MARK.next | MARK.unique);
  });

  it('marks a job of a group and keeps the group in the extras', () => {
    const job = newJob({ group: 'a "b"' });
    expect(marksOf(job)).toBe(MARK.key);
    expect(extrasOf(job)).toBe('{"g":"a \\"b\\""}');
    expect(readExtras(extrasOf(job) ?? '')).toEqual({ group: 'a "b"' });
    expect(marksOf({ ...job, deduplication: { id: 'x' } })).toBe(MARK.key | MARK.unique);
  });

  it('reads extras without a field as a record without that field', () => {
    expect(Object.keys(readExtras('{}'))).toEqual([]);
    expect(Object.keys(readExtras('{"unknown":1}'))).toEqual([]);
  });
});
