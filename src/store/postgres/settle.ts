import type { Keep, Outcome, SettleStatus } from '../../job/outcome.js';
import type { Call, ClaimRequest, SettleReply } from '../contract.js';
import { type ClaimedRow, claimArguments, toClaimReply } from './claim.js';
import { splitToken } from './job-row.js';
import type { Server } from './server.js';
import { step, verb } from './sql-function.js';
import { STATE } from './tables.js';

/** The update is the check: it finds its row only under the current token. */
const OWNED = `j.queue = _queue AND j.id = o.id AND j.state = ${STATE.active} AND j.session = o.owner AND j.fence = o.fence`;
const FINISHED = `o.kind IN ('completed', 'failed')`;

export const SETTLE_FUNCTIONS =
  step(
    `carry_out(_queue int, _clock float8, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[], _stacks text[],
       _delays float8[], _lifos boolean[], _keep_counts float8[], _keep_ages float8[], OUT _change journal, OUT _results text)`,
    'record',
    `
DECLARE
  _base bigint := nextval('places');
  _sum record;
BEGIN
  IF 0 = ANY (_keep_counts) AND (SELECT bool_or(k IS DISTINCT FROM 0) FROM unnest(_keep_counts) k) THEN
    -- Two statements will follow, each in the order of the ids: together they would not be.
    PERFORM FROM jobs WHERE queue = _queue AND id = ANY (_ids) ORDER BY id FOR UPDATE;
  END IF;
  WITH o AS MATERIALIZED (
    SELECT DISTINCT ON (id, owner, fence) *
    FROM unnest(_kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages)
      WITH ORDINALITY o(kind, id, owner, fence, said, stack, delay, lifo, keep_count, keep_age, n)
    ORDER BY id, owner, fence, n
  ), moved AS (
    UPDATE jobs j SET
      state = CASE o.kind WHEN 'completed' THEN ${STATE.completed} WHEN 'failed' THEN ${STATE.failed}
        ELSE CASE WHEN o.delay > 0 THEN ${STATE.delayed} ELSE ${STATE.waiting} END END,
      ord = CASE WHEN o.lifo THEN -(_base + o.n) ELSE _base + o.n END,
      delay = coalesce(o.delay, 0),
      due_at = CASE WHEN o.delay > 0 THEN ceil(_clock + o.delay) END,
      attempts_made = attempts_made + CASE WHEN o.kind IN ('completed', 'failed', 'retry') THEN 1 ELSE 0 END,
      finished_on = CASE WHEN ${FINISHED} THEN floor(_clock) END,
      returnvalue = CASE WHEN o.kind = 'completed' THEN o.said ELSE returnvalue END,
      failed_reason = CASE WHEN o.kind IN ('failed', 'retry') THEN o.said ELSE failed_reason END,
      stacktrace = coalesce(o.stack, stacktrace),
      -- Who finished it stays in the row, so that a repeated finish is recognised.
      session = CASE WHEN ${FINISHED} THEN session END,
      fence = CASE WHEN ${FINISHED} THEN j.fence END,
      claim_seq = NULL, ends_at = NULL, timed = false
    FROM o WHERE ${OWNED} AND o.keep_count IS DISTINCT FROM 0
    RETURNING o.n, o.kind, j.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made, NULL::text AS logged
  ), gone AS (
    DELETE FROM jobs j USING o WHERE ${OWNED} AND o.keep_count = 0
    RETURNING o.n, o.kind, j.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made + 1, CASE WHEN j.log_next > 0 THEN j.id END
  ), done AS (
    SELECT * FROM moved UNION ALL SELECT * FROM gone
  )
  SELECT count(*) AS jobs, array_agg(n) AS ns, array_agg(logged) FILTER (WHERE logged IS NOT NULL) AS logged,
    count(*) FILTER (WHERE kind IN ('completed', 'failed')) AS finishes,
    count(*) FILTER (WHERE kind = 'completed' AND keep_count IS DISTINCT FROM 0) AS completed,
    count(*) FILTER (WHERE kind = 'failed' AND keep_count IS DISTINCT FROM 0) AS failed,
    count(*) FILTER (WHERE delay > 0) AS delayed,
    count(*) FILTER (WHERE delay <= 0 AND priority = 0) AS waiting,
    count(*) FILTER (WHERE delay <= 0 AND priority > 0) AS prioritized,
    min(NULLIF(keep_count, 0)) FILTER (WHERE kind = 'completed') AS completed_most,
    min(keep_age) FILTER (WHERE kind = 'completed' AND keep_count IS DISTINCT FROM 0) AS completed_age,
    min(NULLIF(keep_count, 0)) FILTER (WHERE kind = 'failed') AS failed_most,
    min(keep_age) FILTER (WHERE kind = 'failed' AND keep_count IS DISTINCT FROM 0) AS failed_age,
    string_agg(CASE kind
      WHEN 'completed' THEN '["completed",' || to_json(id) || ',{"returnvalue":' || to_json(said) || '}]'
      WHEN 'failed' THEN '["failed",' || to_json(id) || ',{"failedReason":' || to_json(said) || '}],["retries-exhausted",' || to_json(id)
        || ',{"attemptsMade":' || attempts_made || '}]'
      WHEN 'retry' THEN CASE WHEN delay > 0 THEN '["delayed",' || to_json(id) || ',{"delay":' || delay ELSE '["waiting",' || to_json(id) || ',{"prev":"failed"' END
        || ',"failedReason":' || to_json(said) || '}]'
      WHEN 'delay' THEN '["delayed",' || to_json(id) || ',{"delay":' || delay || '}]'
      ELSE '["waiting",' || to_json(id) || ',{"prev":"active"}]' END, ',' ORDER BY n) AS body,
    count(*) + count(*) FILTER (WHERE kind = 'failed') AS events
  INTO _sum FROM done;
  _change.active := -_sum.jobs;
  _change.finishes := _sum.finishes;
  _change.completed := _sum.completed;
  _change.failed := _sum.failed;
  _change.delayed := _sum.delayed;
  _change.waiting := _sum.waiting;
  _change.prioritized := _sum.prioritized;
  _change.events := _sum.events;
  _change.body := _sum.body;
  IF _sum.logged IS NOT NULL THEN DELETE FROM logs WHERE queue = _queue AND job = ANY (_sum.logged); END IF;
  IF _sum.completed_most IS NOT NULL OR _sum.completed_age IS NOT NULL THEN
    _change.completed := _change.completed - retain(_queue, ${STATE.completed}::smallint, _sum.completed, _sum.completed_most, _clock - _sum.completed_age);
  END IF;
  IF _sum.failed_most IS NOT NULL OR _sum.failed_age IS NOT NULL THEN
    _change.failed := _change.failed - retain(_queue, ${STATE.failed}::smallint, _sum.failed, _sum.failed_most, _clock - _sum.failed_age);
  END IF;
  IF _sum.jobs = cardinality(_ids) THEN
    _results := repeat('d', cardinality(_ids));
  ELSE
    -- Those that found no row are judged by what is there now, as if they came one after the other.
    SELECT string_agg(CASE WHEN o.n = ANY (_sum.ns) THEN 'd' WHEN j.id IS NULL THEN 'm'
      WHEN j.state = CASE o.kind WHEN 'completed' THEN ${STATE.completed} WHEN 'failed' THEN ${STATE.failed} END
        AND j.session = o.owner AND j.fence = o.fence THEN 'd' ELSE 'l' END, '' ORDER BY o.n)
    INTO _results FROM unnest(_kinds, _ids, _owners, _fences) WITH ORDINALITY o(kind, id, owner, fence, n)
    LEFT JOIN jobs j ON j.queue = _queue AND j.id = o.id;
  END IF;
END`,
  ) +
  verb(
    `settle(_name text, _caller text, _seq bigint, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[], _stacks text[],
       _delays float8[], _lifos boolean[], _keep_counts float8[], _keep_ages float8[],
       _session text, _claim_seq bigint, _count int, _by text, _timed float8, _max float8, _window float8)`,
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _results text;
  _remembered boolean := false;
  _same_call boolean := coalesce(_caller = _session AND _seq = _claim_seq, false);
  _enter record;
  _change journal;
  _got record;
  _claimed text;
BEGIN
  IF _queue IS NULL THEN
    _results := repeat('m', cardinality(_ids));
    IF _session IS NOT NULL THEN _claimed := claim_reply(NULL, false, false, 0, NULL, 0, true); END IF;
  ELSE
    IF _caller IS NOT NULL THEN
      _results := recall(_queue, _caller, _seq);
      _remembered := _results IS NOT NULL;
    END IF;
    -- Before any job is locked, as everywhere.
    IF _session IS NOT NULL THEN SELECT * INTO _enter FROM enter_claim(_queue, _session, floor(_clock)::bigint); END IF;
    IF NOT _remembered THEN
      SELECT * INTO _got FROM carry_out(_queue, _clock, _kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages);
      _change := _got._change;
      _results := _got._results;
    END IF;
    IF _session IS NOT NULL THEN
      SELECT * INTO _got
      FROM take(_queue, _session, _claim_seq, _count, _by, _timed, _max, _window, _clock, _enter.alive, _enter.last, _change);
      _change := _got._change;
      _claimed := _got._reply;
      IF _got._taken > 0 AND NOT _same_call THEN PERFORM remember(_queue, _session, _claim_seq, NULL); END IF;
    END IF;
    -- After the claim, which would take its own number for that of a call that was carried out before.
    IF _caller IS NOT NULL AND NOT _remembered THEN PERFORM remember(_queue, _caller, _seq, _results); END IF;
    PERFORM note(_queue, _change);
    PERFORM fold_sometimes(_queue);
  END IF;
  RETURN '{"results":"' || _results || '","claimed":' || coalesce(_claimed, 'null') || '}';
END`,
  );

const STATUSES: Record<string, SettleStatus> = { d: 'done', l: 'lost', m: 'missing' };

interface Reply {
  results: string;
  claimed: ClaimedRow | null;
}

export async function settle(
  server: Server,
  queue: string,
  outcomes: Outcome[],
  call: Call | undefined,
  claim: ClaimRequest | undefined,
): Promise<SettleReply> {
  const tokens = outcomes.map(({ token }) => splitToken(token));
  const reply = await server.call<Reply>('settle', [
    queue,
    call?.caller ?? null,
    call?.seq ?? null,
    outcomes.map(({ kind }) => kind),
    outcomes.map(({ jobId }) => jobId),
    tokens.map(({ session }) => session),
    tokens.map(({ fence }) => fence),
    outcomes.map(textOf),
    outcomes.map((outcome) => ('stacktrace' in outcome ? outcome.stacktrace : null)),
    outcomes.map(delayOf),
    outcomes.map((outcome) => outcome.kind === 'release' || (outcome.kind === 'retry' && outcome.delayMs <= 0 && outcome.lifo)),
    outcomes.map((outcome) => keepOf(outcome).count ?? null),
    outcomes.map((outcome) => keepOf(outcome).ageMs ?? null),
    ...claimArguments(claim),
  ]);
  const results = Array.from(reply.results, (letter) => STATUSES[letter] as SettleStatus);
  if (claim === undefined || reply.claimed === null) return { results };
  return { results, claimed: toClaimReply(reply.claimed, claim.session) };
}

function textOf(outcome: Outcome): string | null {
  if (outcome.kind === 'completed') return outcome.value;
  return outcome.kind === 'failed' || outcome.kind === 'retry' ? outcome.reason : null;
}

/** Of those that go on living; null for a finish. */
function delayOf(outcome: Outcome): number | null {
  if (outcome.kind === 'retry' || outcome.kind === 'delay') return outcome.delayMs;
  return outcome.kind === 'release' ? 0 : null;
}

function keepOf(outcome: Outcome): Keep {
  return 'keep' in outcome ? outcome.keep : {};
}
