// One run: from a plan to a verdict. Everything in it follows from the plan, so the same one ends in the same way, always.
import { Crew } from './crew.mjs';
import { HostClock } from './host-clock.mjs';
import { Loop } from './loop.mjs';
import { Nemesis } from './nemesis.mjs';
import { NO_HISTORY } from './history.mjs';
import { CHILD_QUEUE, LETTER_QUEUE, QUEUE } from './queues.mjs';
import { Random } from './random.mjs';
import { ENGINES } from './server.mjs';
import { serversFor } from './servers.mjs';
import { Witness } from './witness/witness.mjs';
import { World } from './world.mjs';

/** Longer than all patience in the product: a call that hangs is given up after 30 s at the latest. */
const QUIET_MS = 120_000;

/** By store and defect: modules that all realms share. */
const sharedModules = new Map();

/**
 * @param {any} plan
 * @param {{ defect?: any, history?: any, store?: string }} [options]
 * @returns {Promise<{ violation?: { invariant: string, text: string, at: number }, steps: number, simulatedMs: number, faults: Record<string, number> }>}
 */
export async function run(drawn, { defect, history = NO_HISTORY, store: engine = 'memory' } = {}) {
  const plan = { ...ENGINES[engine].planned(drawn) };
  const random = new Random(`${plan.seed}/run`);
  const world = new World(random.fork('scheduler'), () => witness.look());
  const witness = new Witness({ world, queue: QUEUE, history, random: random.fork('witness') });
  history.attach(world);
  const shared = sharedFor(defect, engine);
  const server = serversFor({ world, random: random.fork('store'), shared, defect, engine, plan, witness });
  await server.open();
  // A store that does not keep families yet is not asked for them.
  if (!server.hasFamilies) plan.flows = [];
  const hasSteps = plan.timeoutGraceMs !== undefined;
  witness.endings.movesOnMs = plan.movesOnMs;
  witness.handlers.isJudged = plan.isInPeace === true;
  witness.handlers.judgesLimits = plan.isInPeace === true && plan.faults.length === 0;
  witness.handlers.graceMs = plan.timeoutGraceMs;
  for (const { steps } of witness.allBooks) steps.isKept = hasSteps;
  const nemesisLoop = new Loop('nemesis', world, new HostClock(world));
  const context = { plan, world, server, history, shared, defect, random, nemesis: nemesisLoop };
  // A store that does not carry them yet is not asked for them.
  witness.books.jobs.groupConcurrency = plan.groupConcurrency;
  witness.books.schedules.quietFrom = plan.schedules?.[0]?.quietMs;
  if (plan.flows?.length > 0) {
    for (const { families, ledger } of witness.allBooks) {
      families.quietFrom = plan.flows[0].quietMs;
      families.letters = LETTER_QUEUE;
      ledger.queues = [QUEUE, CHILD_QUEUE];
    }
  }
  const crew = new Crew({ context, parts: { plan, witness, history } });
  const nemesis = new Nemesis(crew, history);
  for (const fault of plan.faults) nemesisLoop.arrive(fault.at, () => nemesis.do(fault));
  const onRejection = (error) => world.violate({ invariant: 'no uncaught error', text: `unhandled rejection: ${error?.stack}` });
  process.on('unhandledRejection', onRejection);
  // Errors are common here, and half of their price is a stack that nobody reads.
  const { stackTraceLimit } = Error;
  if (history === NO_HISTORY) Error.stackTraceLimit = 0;
  try {
    await world.run(plan.faultsMs, () => false);
    crew.heal();
    await world.run(plan.faultsMs + QUIET_MS, () => crew.unrest === undefined);
  } finally {
    process.off('unhandledRejection', onRejection);
    server.close();
    Error.stackTraceLimit = stackTraceLimit;
  }
  const { unrest } = crew;
  if (unrest !== undefined) {
    world.violate({ invariant: 'every job ends', ...unrest, text: `${QUIET_MS / 1000} s after the last fault, ${unrest.text}` });
  }
  return { violation: world.violation, steps: world.steps, simulatedMs: world.now, faults: nemesis.counts };
}

function sharedFor(defect, engine) {
  const ofEngine = sharedModules.get(engine) ?? new Map();
  sharedModules.set(engine, ofEngine);
  const shared = ofEngine.get(defect) ?? new Map();
  ofEngine.set(defect, shared);
  return shared;
}
