// The shape of flows and graphs, and the options of a FlowProducer.
import type { Job } from '../handle/job.js';
import type { DefaultJobOptions, JobsOptions } from '../job/options.js';
import { MAX_TIMER_MS, checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { BASE_NAMES, BASE_IGNORED, type QueueBaseOptions } from '../store/base-options.js';
import { ADD_TIMEOUT_MS, type TransactionOption } from './queue-options.js';

export interface FlowProducerOptions extends QueueBaseOptions {
  /** How long an add is retried while the store does not reply, in ms. Default 30,000. */
  addTimeoutMs?: number;
}

/** The options of a node. */
export type FlowJobOptions = Omit<JobsOptions, 'repeat'>;

/** A job and the jobs that it waits for. */
export interface FlowJob {
  name: string;
  queueName: string;
  data?: unknown;
  /** Default: that of the producer. */
  prefix?: string;
  opts?: FlowJobOptions;
  /** They run before this job. An empty list is the same as none. */
  children?: FlowJob[];
}

export interface FlowOptions extends TransactionOption {
  /** By the names of queues. */
  queuesOptions?: Record<string, { defaultJobOptions?: DefaultJobOptions }>;
}

export interface JobNode {
  job: Job;
  children?: JobNode[];
}

/** A job of a graph. */
export type GraphNode = Omit<FlowJob, 'children'>;

export interface FlowGraph<Name extends string = string> {
  /** Jobs by names of your choice, which `edges` and the result use. */
  nodes: Record<Name, GraphNode>;
  /** The second job waits for the first one. */
  edges: [before: NoInfer<Name>, after: NoInfer<Name>][];
}

export interface GetFlowOptions {
  id: string;
  queueName: string;
  prefix?: string;
  /** How many levels are read. Default 10. */
  depth?: number;
  /** How many children of a job are read. Default 20. */
  maxChildren?: number;
}

/** The most jobs of one flow or graph: it is added in one step. */
export const MAX_NODES = 20_000;
/** The most data of one flow or graph, in characters of JSON. */
export const MAX_FLOW_BYTES = 32 * 1024 * 1024;
/** The most levels of a flow. */
export const MAX_DEPTH = 1_000;

export const FLOW_NAMES = new OptionNames<FlowJob>({
  of: 'flow',
  known: { name: true, queueName: true, data: true, prefix: true, opts: true, children: true },
  refuses: 'unknown objects',
  unsupported: { options: 'Call it opts.', queue: 'Call it queueName.' },
});
export const NODE_NAMES = new OptionNames<GraphNode>({
  of: 'graph',
  known: { name: true, queueName: true, data: true, prefix: true, opts: true },
  refuses: 'unknown objects',
  unsupported: { children: 'Name the children as nodes, and the order in `edges`.' },
});
export const GRAPH_NAMES = new OptionNames<FlowGraph>({ of: 'addGraph', known: { nodes: true, edges: true } });
export const FLOW_ADD_NAMES = new OptionNames<FlowOptions>({ of: 'flow.add', known: { queuesOptions: true, transaction: true } });
export const GET_FLOW_NAMES = new OptionNames<GetFlowOptions>({
  of: 'getFlow',
  known: { id: true, queueName: true, prefix: true, depth: true, maxChildren: true },
});

const PRODUCER_NAMES = new OptionNames<FlowProducerOptions>({
  of: 'flow producer',
  known: { ...BASE_NAMES, addTimeoutMs: true },
  // Frameworks pass `name` to whatever they make, and the options of queues to flow producers.
  without: ['name'],
  ignored: { ...BASE_IGNORED, defaultJobOptions: 'Pass queuesOptions to flow.add.' },
});

export function checkProducerOptions(options: unknown): FlowProducerOptions & { addTimeoutMs: number } {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw invalidOption('opts', options, 'an object with options of a flow producer');
  const given = options as FlowProducerOptions & Record<string, unknown>;
  PRODUCER_NAMES.check(given);
  const addTimeoutMs = checkInteger('addTimeoutMs', given.addTimeoutMs ?? ADD_TIMEOUT_MS, { min: 1, max: MAX_TIMER_MS });
  return { ...given, addTimeoutMs };
}
