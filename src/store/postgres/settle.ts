// Settles jobs: applies the outcomes that workers report, and claims the next jobs in the same call. An outcome with a stale token must
// change nothing. A repeated call (same caller and number) must return the first results.
import type { Keep, Outcome, SettleStatus } from '../../job/outcome.js';
import { EVENT_VALUE_BYTES } from '../budget.js';
import type { Call, ClaimRequest, SettleReply } from '../contract/index.js';
import { recall, remember } from './callers.js';
import { type ClaimedRow, claimArguments, LOCK_SESSION, toClaimReply } from './claim.js';
import { leaveOutLarge, valueFields } from './event-values.js';
import { FOLD_SOMETIMES_OR_LARGE, NOTE } from './fold.js';
import { ALL_INLINE, splitToken } from './job-row.js';
import { freeKeys } from './key.js';
import { fillClaimed, INLINE_BYTES } from './large-values.js';
import { jobOf, lockJobs } from './lookup.js';
import { type Detours, plainArguments, settlePlain } from './plain-settle.js';
import type { Server } from './server.js';
import { step, verb } from './sql-function.js';
import { IS_ACTIVE, STATE } from './tables.js';

/** The write itself is the check, whatever was read before: it finds its row only under the current token. */
const owned = (owner: string, fence: string) => `j.${IS_ACTIVE} AND j.session = ${owner} AND j.fence = ${fence}`;
const OWNED = owned('o.owner', 'o.fence');
const FINISHED = `o.kind IN ('completed', 'failed')`;

const BACK = `CASE WHEN j.lock_key IS NULL THEN ${STATE.waiting} ELSE ${STATE.keyed} END`;

/** The new values of the job of the outcome `o`, if the job stays. */
const MOVED = `
    state = CASE o.kind WHEN 'completed' THEN ${STATE.completed} WHEN 'failed' THEN ${STATE.failed}
      WHEN 'retry' THEN ${BACK} WHEN 'release' THEN ${BACK} WHEN 'return' THEN ${BACK} ELSE ${STATE.delayed} END,
    ord = CASE WHEN o.lifo THEN -(_base + o.n) ELSE _base + o.n END,
    delay = coalesce(o.delay, 0),
    due_at = ceil(_clock + o.delay),
    attempts_made = attempts_made + CASE WHEN o.kind IN ('delay', 'release', 'return') THEN 0 ELSE 1 END,
    attempts_started = attempts_started - CASE WHEN o.kind = 'return' THEN 1 ELSE 0 END,
    finished_on = CASE WHEN ${FINISHED} THEN floor(_clock) END,
    returnvalue = CASE WHEN o.kind = 'completed' THEN o.said ELSE returnvalue END,
    failed_reason = CASE WHEN o.kind IN ('failed', 'retry', 'retry later') THEN o.said ELSE failed_reason END,
    stacktrace = coalesce(o.stack, stacktrace),
    -- Who finished it stays in the row, so that a repeated finish is recognised.
    session = CASE WHEN ${FINISHED} THEN session END,
    fence = CASE WHEN ${FINISHED} THEN j.fence END,
    claim_seq = NULL, ends_at = NULL, timed = false`;

/**
 * The new values of a job that completed and stays. This avoids the CASE expressions of MOVED and a lock before each write: 10 % fewer
 * WAL records, and 9 to 39 % less of the server's time for a call of ten jobs. For one job and for a hundred no gain was measured.
 * Finding queue, caller and session in one statement instead of three made no difference.
 */
const completed = (ord: string, said: string) => `
    state = ${STATE.completed}, ord = ${ord}, delay = 0, due_at = NULL, attempts_made = attempts_made + 1, finished_on = floor(_clock),
    returnvalue = ${said}, claim_seq = NULL, ends_at = NULL, timed = false`;

/** The outcome of a call with only one. */
const ALONE = `(SELECT _kinds[1] AS kind, _ids[1] AS id, _owners[1] AS owner, _fences[1] AS fence, _texts[1] AS said, _stacks[1] AS stack,
      _delays[1] AS delay, _lifos[1] AS lifo, 1 AS n) o`;

export const SETTLE_FUNCTIONS =
  // Records a group of outcomes of one kind: counts, events, and retention of jobs that finished before.
  step(
    `book(_queue int, _clock float8, _kind text, _jobs bigint, _plain bigint, _kept bigint, _most float8, _age float8, _ids text[], _said text[],
       _delays float8[], _attempts int[], INOUT _change journal, _removed boolean[] DEFAULT NULL)`,
    'journal',
    `
DECLARE
  _body text;
  _large int[];
  _dues bigint[];
  _ended text[];
BEGIN
  IF _kind IN ('retry later', 'delay') THEN SELECT array_agg(ceil(_clock + delay)::bigint ORDER BY n) INTO _dues FROM unnest(_delays) WITH ORDINALITY d(delay, n); END IF;
  _change.active := _change.active - _jobs;
  _change.events := _change.events + _jobs;
  CASE _kind
    WHEN 'completed' THEN
      -- A large result stays with its job, if the job stays.
      IF pg_column_size(_said) > ${EVENT_VALUE_BYTES} THEN
        ${leaveOutLarge('_said', 'unnest(_said, _removed) WITH ORDINALITY o(said, removed, n)', 'removed IS NOT TRUE AND')}
      END IF;
      _body := event('completed', _ids, ${valueFields('returnvalue', '_said')});
    WHEN 'failed' THEN
      _body := event('failed', _ids, json_build_object('failedReason', _said));
      -- Those without a number have attempts left.
      SELECT array_agg(id ORDER BY n), array_agg(attempts ORDER BY n) INTO _ended, _attempts
      FROM unnest(_ids, _attempts) WITH ORDINALITY o(id, attempts, n) WHERE attempts IS NOT NULL;
      IF _ended IS NOT NULL THEN
        _change.events := _change.events + cardinality(_ended);
        _body := _body || ',' || event('retries-exhausted', _ended, json_build_object('attemptsMade', _attempts));
      END IF;
    WHEN 'retry' THEN _body := event('waiting', _ids, json_build_object('prev', 'active', 'failedReason', _said));
    WHEN 'retry later' THEN _body := event('delayed', _ids, json_build_object('delay', _dues, 'failedReason', _said));
    WHEN 'delay' THEN _body := event('delayed', _ids, json_build_object('delay', _dues));
    WHEN 'release', 'return' THEN _body := event('waiting', _ids, '{"prev":"active"}');
  END CASE;
  _change.body := concat_ws(',', _change.body, _body);
  IF _kind = 'completed' THEN
    _change.finishes := _change.finishes + _jobs;
    _change.completed := _change.completed + _kept;
    IF _most IS NOT NULL OR _age IS NOT NULL THEN
      _change.completed := _change.completed - retain(_queue, ${STATE.completed}::smallint, _change.completed, _most, _clock - _age);
    END IF;
  ELSIF _kind = 'failed' THEN
    _change.finishes := _change.finishes + _jobs;
    _change.failed := _change.failed + _kept;
    IF _most IS NOT NULL OR _age IS NOT NULL THEN
      _change.failed := _change.failed - retain(_queue, ${STATE.failed}::smallint, _change.failed, _most, _clock - _age);
    END IF;
  ELSIF _kind IN ('retry later', 'delay') THEN
    _change.delayed := _change.delayed + _jobs;
  ELSE
    _change.waiting := _change.waiting + _plain;
    _change.prioritized := _change.prioritized + _jobs - _plain;
  END IF;
END`,
  ) +
  step(
    `carry_out(_queue int, _clock float8, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[], _stacks text[],
       _delays float8[], _lifos boolean[], _keep_counts float8[], _keep_ages float8[], INOUT _change journal, OUT _results text, OUT _freed text[])`,
    'record',
    `
DECLARE
  _base bigint := nextval('places');
  _group record;
  _done bigint[] := '{}';
  _key text;
  _which text[] := _ids;
  _said text[] := _texts;
  _most float8;
  _age float8;
  _early boolean[];
BEGIN
  IF 'failed early' = ANY (_kinds) THEN
    SELECT array_agg(kind = 'failed early' ORDER BY n) INTO _early FROM unnest(_kinds) WITH ORDINALITY k(kind, n);
    _kinds := array_replace(_kinds, 'failed early', 'failed');
  END IF;
  IF 'completed' = ALL (_kinds) AND NOT coalesce(0 = ANY (_keep_counts), false) THEN
    -- As most calls are.
    IF cardinality(_ids) = 1 THEN
      UPDATE jobs j SET ${completed('_base + 1', '_texts[1]')}
      WHERE j.queue = _queue AND j.id = _ids[1] AND ${owned('_owners[1]', '_fences[1]')} RETURNING j.lock_key INTO _key;
      IF FOUND THEN _done := ARRAY[1]; END IF;
      IF _key IS NOT NULL THEN _freed := ARRAY[_key]; END IF;
    ELSE
      -- Written, and so locked, in the order of the ids. A row that another transaction has just written may be left out: the loop below finds it.
      WITH outcomes AS (
        SELECT DISTINCT ON (id, owner, fence) * FROM unnest(_ids, _owners, _fences, _texts) WITH ORDINALITY o(id, owner, fence, said, n)
        ORDER BY id, owner, fence, n
      ), o AS MATERIALIZED (
        SELECT * FROM outcomes o, LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND ${OWNED} OFFSET 0) held
      ), moved AS (
        UPDATE jobs j SET ${completed('_base + o.n', 'o.said')} FROM o WHERE j.ctid = o.at AND ${OWNED} RETURNING o.n, j.lock_key
      )
      SELECT coalesce(array_agg(n ORDER BY n), '{}'), array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL) INTO _done, _freed FROM moved;
    END IF;
    IF cardinality(_done) < cardinality(_ids) THEN
      SELECT array_agg(_ids[n] ORDER BY n), array_agg(_texts[n] ORDER BY n) INTO _which, _said FROM unnest(_done) n;
    END IF;
    IF _keep_counts IS NOT NULL OR _keep_ages IS NOT NULL THEN
      SELECT min(most), min(age) INTO _most, _age FROM unnest(_keep_counts, _keep_ages) keep(most, age);
    END IF;
    IF cardinality(_done) > 0 THEN
      _change := book(_queue, _clock, 'completed', cardinality(_done), 0, cardinality(_done), _most, _age, _which, _said, NULL, NULL, _change);
    END IF;
    IF cardinality(_done) = cardinality(_ids) THEN
      _results := repeat('d', cardinality(_ids));
      RETURN;
    END IF;
  END IF;
  -- Most calls of a worker with few jobs bring one outcome: the statement for many takes 0.06 ms longer to set up.
  IF cardinality(_ids) = 1 AND _keep_counts[1] IS DISTINCT FROM 0 THEN
    UPDATE jobs j SET ${MOVED}
    FROM ${ALONE} WHERE j.queue = _queue AND j.id = o.id AND ${OWNED} RETURNING j.priority, j.attempts_made, j.lock_key INTO _group;
    IF FOUND THEN
      IF _group.lock_key IS NOT NULL THEN _freed := ARRAY[_group.lock_key]; END IF;
      _change := book(_queue, _clock, _kinds[1], 1, (_group.priority = 0)::int, 1, _keep_counts[1], _keep_ages[1], _ids, _texts,
        _delays, ARRAY[CASE WHEN _early[1] IS NOT TRUE THEN _group.attempts_made END], _change);
      _results := 'd';
      RETURN;
    END IF;
  END IF;
  LOOP
    FOR _group IN WITH outcomes AS (
      SELECT DISTINCT ON (id, owner, fence) *
      FROM unnest(_kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages)
        WITH ORDINALITY o(kind, id, owner, fence, said, stack, delay, lifo, keep_count, keep_age, n)
      WHERE cardinality(_done) = 0 OR n <> ALL (_done)
      ORDER BY id, owner, fence, n
    ), o AS MATERIALIZED (
      -- Looked up and locked one by one, in the order of the ids: the next statement writes in another order, and so waits for no transaction.
      -- Writing at once without this would take 4 % less for 100 jobs, but then the planner may begin with all jobs of the queue.
      SELECT * FROM outcomes o, LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND ${OWNED} FOR UPDATE) held
    ), moved AS (
      UPDATE jobs j SET ${MOVED}
      FROM o WHERE j.ctid = o.at AND ${OWNED} AND o.keep_count IS DISTINCT FROM 0
      RETURNING o.n, o.kind, o.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made, false AS logged, j.lock_key
    ), gone AS (
      DELETE FROM jobs j USING o WHERE j.ctid = o.at AND ${OWNED} AND o.keep_count = 0
      RETURNING o.n, o.kind, o.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made + 1, j.log_next > 0, j.lock_key
    )
    SELECT kind, count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain, count(*) FILTER (WHERE keep_count IS DISTINCT FROM 0) AS kept,
      min(NULLIF(keep_count, 0)) AS most, min(keep_age) FILTER (WHERE keep_count IS DISTINCT FROM 0) AS age,
      array_agg(n) AS ns, array_agg(id) AS ids, array_agg(keep_count IS NOT DISTINCT FROM 0) AS removed, array_agg(said) AS said, array_agg(delay) AS delays, array_agg(CASE WHEN _early[n] IS NOT TRUE THEN attempts_made END) AS attempts,
      array_agg(id) FILTER (WHERE logged) AS logged, array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL) AS keys
    FROM (SELECT * FROM moved UNION ALL SELECT * FROM gone ORDER BY n) done GROUP BY kind
    LOOP
      _done := _done || _group.ns;
      _freed := _freed || _group.keys;
      IF _group.logged IS NOT NULL THEN DELETE FROM logs WHERE queue = _queue AND job = ANY (_group.logged); END IF;
      _change := book(_queue, _clock, _group.kind, _group.jobs, _group.plain, _group.kept, _group.most, _group.age, _group.ids, _group.said,
        _group.delays, _group.attempts, _change, _group.removed);
    END LOOP;
    IF cardinality(_done) = cardinality(_ids) THEN
      _results := repeat('d', cardinality(_ids));
      RETURN;
    END IF;
    -- Those that found no row are judged by what is there now, as if they came one after the other. One that is owned still was locked
    -- after another transaction had written to it, and can be written to by the next statement.
    SELECT string_agg(CASE WHEN o.n = ANY (_done) THEN 'd' WHEN j.id IS NULL THEN 'm' WHEN ${OWNED} THEN 'o'
      WHEN j.state = CASE o.kind WHEN 'completed' THEN ${STATE.completed} WHEN 'failed' THEN ${STATE.failed} END
        AND j.session = o.owner AND j.fence = o.fence THEN 'd' ELSE 'l' END, '' ORDER BY o.n)
    INTO _results FROM unnest(_kinds, _ids, _owners, _fences) WITH ORDINALITY o(kind, id, owner, fence, n)
    LEFT JOIN ${jobOf('o.id')} j ON true;
    EXIT WHEN position('o' IN _results) = 0;
  END LOOP;
END`,
  ) +
  verb(
    `settle(_name text, _caller text, _seq bigint, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[], _stacks text[],
       _delays float8[], _lifos boolean[], _keep_counts float8[], _keep_ages float8[],
       _session text, _claim_seq bigint, _count int, _job_ids text[], _by text, _timed float8, _max float8, _window float8,
       _inline int DEFAULT ${ALL_INLINE})`,
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int;
  _capped boolean;
  _results text;
  _remembered boolean := false;
  _same_call boolean := coalesce(_caller = _session AND _seq = _claim_seq, false);
  _alive boolean;
  _last bigint;
  _change journal;
  _got record;
  _claimed text;
  _freed text[];
BEGIN
  SELECT queue, max_active IS NOT NULL INTO _queue, _capped FROM queues WHERE name = _name;
  IF _queue IS NULL THEN
    _results := repeat('m', cardinality(_ids));
    IF _session IS NOT NULL THEN _claimed := claim_reply(NULL, false, false, 0, NULL, 0, true); END IF;
  ELSE
    IF _caller IS NOT NULL THEN
      ${recall('_results')}
      _remembered := _results IS NOT NULL;
    END IF;
    -- Before any job is locked, as everywhere.
    IF _session IS NOT NULL THEN
      ${LOCK_SESSION}
      IF _alive AND _session IS DISTINCT FROM _caller THEN _last := enter_call(_queue, _session); END IF;
    END IF;
    _change := no_change(_queue);
    -- All of them at once, in one order.
    IF _job_ids IS NOT NULL THEN ${lockJobs('_ids || _job_ids')}; END IF;
    IF NOT _remembered THEN
      _got := carry_out(_queue, _clock, _kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages, _change);
      _change := _got._change;
      _results := _got._results;
      _freed := _got._freed;
      ${freeKeys('_freed')}
    END IF;
    IF _session IS NOT NULL THEN
      _got := take(_queue, _session, _claim_seq, _count, _job_ids, _by, _timed, _max, _window, _clock, _alive, _last, _change, _inline);
      _change := _got._change;
      _claimed := _got._reply;
      IF _got._taken > 0 AND NOT _same_call THEN ${remember('_session', '_claim_seq', 'NULL')}; END IF;
    END IF;
    -- After the claim, which would take its own number for that of a call that was carried out before.
    IF _caller IS NOT NULL AND NOT _remembered THEN ${remember('_caller', '_seq', '_results')}; END IF;
    ${NOTE}
    ${FOLD_SOMETIMES_OR_LARGE}
  END IF;
  RETURN '{"results":"' || _results || '","room":' || (_freed IS NOT NULL OR coalesce(_capped, false)) || ',"claimed":' || coalesce(_claimed, 'null') || '}';
END`,
  );

const STATUSES: Record<string, SettleStatus> = { d: 'done', l: 'lost', m: 'missing' };

interface Reply {
  results: string;
  /** True if a key or a place under the cap may have come free. */
  room: boolean;
  claimed: ClaimedRow | null;
  /** True if the call took the fast path. */
  plain?: boolean;
}

export async function settle(
  server: Server,
  queue: string,
  outcomes: Outcome[],
  call: Call | undefined,
  claim: ClaimRequest | undefined,
  detours: Detours,
): Promise<SettleReply & { room: boolean }> {
  const plain = call && claim && plainArguments(queue, outcomes, call, claim);
  let reply = plain && detours.open(queue) ? await settlePlain<Reply>(server, plain) : undefined;
  if (reply !== undefined && reply.plain === undefined) detours.take(queue);
  reply ??= await server.call<Reply>('settle', argumentsOf(queue, outcomes, call, claim));
  const results = Array.from(reply.results, (letter) => STATUSES[letter] as SettleStatus);
  if (claim === undefined || reply.claimed === null) return { results, room: reply.room };
  return { results, room: reply.room, claimed: await fillClaimed(server, queue, toClaimReply(reply.claimed, claim)) };
}

function argumentsOf(queue: string, outcomes: Outcome[], call: Call | undefined, claim: ClaimRequest | undefined): unknown[] {
  const tokens = outcomes.map(({ token }) => splitToken(token));
  return [
    queue,
    call?.caller ?? null,
    call?.seq ?? null,
    outcomes.map(kindOf),
    outcomes.map(({ jobId }) => jobId),
    tokens.map(({ session }) => session),
    tokens.map(({ fence }) => fence),
    outcomes.map(textOf),
    anyOf(outcomes.map((outcome) => ('stacktrace' in outcome ? outcome.stacktrace : null))),
    anyOf(outcomes.map(delayOf)),
    anyOf(outcomes.map(isLifo)),
    anyOf(outcomes.map((outcome) => keepOf(outcome).count ?? null)),
    anyOf(outcomes.map((outcome) => keepOf(outcome).ageMs ?? null)),
    ...claimArguments(claim),
    INLINE_BYTES,
  ];
}

function textOf(outcome: Outcome): string | null {
  if (outcome.kind === 'completed') return outcome.value;
  return outcome.kind === 'failed' || outcome.kind === 'retry' ? outcome.reason : null;
}

/**
 * Returns null for a list of nulls, so that it is not sent: `unnest` fills it with nulls. For 100 finished jobs that saves 0.1 ms on both
 * sides.
 */
function anyOf<T>(list: (T | null)[]): (T | null)[] | null {
  return list.every((item) => item === null) ? null : list;
}

function isLifo(outcome: Outcome): true | null {
  const { kind } = outcome;
  return kind === 'release' || kind === 'return' || (kind === 'retry' && outcome.delayMs <= 0 && outcome.lifo) ? true : null;
}

/** Returns the delay of outcomes that make a job delayed. */
function delayOf(outcome: Outcome): number | null {
  if (outcome.kind === 'delay') return outcome.delayMs;
  return outcome.kind === 'retry' && outcome.delayMs > 0 ? outcome.delayMs : null;
}

function keepOf(outcome: Outcome): Keep {
  return 'keep' in outcome ? outcome.keep : {};
}

function kindOf(outcome: Outcome): string {
  if (outcome.kind === 'retry' && outcome.delayMs > 0) return 'retry later';
  return outcome.kind === 'failed' && outcome.early === true ? 'failed early' : outcome.kind;
}
