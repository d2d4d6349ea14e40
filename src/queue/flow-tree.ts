// Turns flows and graphs into the jobs of one call: parents before their children, each with an id. Nothing here calls a store.
import { randomUUID } from 'node:crypto';
import { HoldfastError } from '../errors.js';
import { onFailureOf } from '../job/family-options.js';
import { type JobRef, type ParentLink, refKey } from '../job/family.js';
import { type QueueNames, queueNames } from '../job/names.js';
import type { NewJob } from '../job/record.js';
import { invalidOption } from '../runtime/check.js';
import { Turns } from '../runtime/turns.js';
import { Drafts } from './draft.js';
import { withContext } from './traced-add.js';
import {
  FLOW_NAMES,
  type FlowGraph,
  type FlowJob,
  type FlowOptions,
  GRAPH_NAMES,
  type GraphNode,
  MAX_DEPTH,
  MAX_NODES,
  NODE_NAMES,
} from './flow-options.js';

/** A node as the store takes it, with what its handle shows. */
export interface DraftNode {
  names: QueueNames;
  job: NewJob & { id: string; queue: string };
  /** The data as the caller passed it. */
  data: unknown;
  children?: DraftNode[];
}

export class FlowDrafts {
  /** Parents before their children. */
  readonly nodes: DraftNode[] = [];
  readonly #prefix: string | undefined;
  readonly #options: FlowOptions;
  readonly #metadata: string | undefined;
  readonly #drafts = new Map<string, Drafts>();
  readonly #seen = new Map<string, string>();
  readonly #turns = new Turns();

  /** `metadata`: the telemetry context that jobs without one of their own carry. */
  constructor(prefix: string | undefined, options: FlowOptions, metadata?: string) {
    this.#metadata = metadata;
    this.#prefix = prefix;
    this.#options = options;
  }

  /** Adds a tree, and returns its root. Walks without recursion: a tree may be deep. */
  async tree(flow: FlowJob): Promise<DraftNode> {
    const ancestors = new Set<unknown>();
    const root: { node?: DraftNode } = {};
    type Step = { flow: FlowJob; path: string; parent: DraftNode | undefined; depth: number } | { leave: unknown };
    const steps: Step[] = [{ flow, path: 'flow', parent: undefined, depth: 1 }];
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      if ('leave' in step) {
        ancestors.delete(step.leave);
        continue;
      }
      if (this.#turns.isOver) await this.#turns.next();
      const { flow: given, path, parent, depth } = step;
      if (ancestors.has(given)) throw invalidFlow(`${path} is a job that stands above itself: a flow cannot have a cycle.`);
      if (depth > MAX_DEPTH)
        throw invalidFlow(`The flow has more than ${MAX_DEPTH} levels. Let a handler add the next levels as children.`);
      const children = checkNode(given, path);
      const node = this.#make(given, path, parent === undefined ? undefined : [refOf(parent)], children.length > 0);
      if (parent === undefined) root.node = node;
      else (parent.children ??= []).push(node);
      ancestors.add(given);
      steps.push({ leave: given });
      for (let n = children.length - 1; n >= 0; n -= 1)
        steps.push({ flow: children[n] as FlowJob, path: `${path}.children[${n}]`, parent: node, depth: depth + 1 });
    }
    return root.node as DraftNode;
  }

  /** Adds a graph. Returns its nodes by their names. */
  async graph(given: FlowGraph): Promise<Map<string, DraftNode>> {
    const { nodes, edges } = GRAPH_NAMES.checked(given);
    if (typeof nodes !== 'object' || nodes === null || Array.isArray(nodes))
      throw invalidOption('nodes', nodes, 'jobs by their names');
    if (!Array.isArray(edges)) throw invalidOption('edges', edges, 'a list of [before, after]');
    const named = new Map(Object.entries(nodes));
    if (named.size > MAX_NODES) throw tooMany();
    const parents = parentsOf(named, edges);
    const waiting = new Set(edges.map(([, after]) => after));
    const made = new Map<string, DraftNode>();
    for (const name of parentsFirst(named, parents)) {
      if (this.#turns.isOver) await this.#turns.next();
      const above = (parents.get(name) ?? []).map((parent) => refOf(made.get(parent) as DraftNode));
      const node = named.get(name) as GraphNode;
      if (typeof node !== 'object' || node === null)
        throw invalidOption(`nodes.${name}`, node, '{ name, queueName, data, opts }');
      NODE_NAMES.check(node as GraphNode & Record<string, unknown>, `nodes.${name}`);
      const draft = this.#make(node, `nodes.${name}`, above.length === 0 ? undefined : above, waiting.has(name));
      if (named.size > 1) refuseDeduplication(draft, `nodes.${name}`);
      if (above.length > 0) draft.job.shares = true;
      made.set(name, draft);
    }
    return made;
  }

  #make(given: GraphNode, path: string, above: JobRef[] | undefined, waits: boolean): DraftNode {
    if (this.nodes.length >= MAX_NODES) throw tooMany();
    const names = atPath(path, () => queueNames(given.queueName, given.prefix ?? this.#prefix));
    const { opts = {}, data } = given;
    if ('repeat' in opts && opts.repeat !== undefined)
      throw invalidOption(`${path}.opts.repeat`, opts.repeat, 'left out in a flow');
    if (above !== undefined && opts.parent !== undefined)
      throw invalidOption(`${path}.opts.parent`, opts.parent, 'given for the root of a flow alone');
    const draft = atPath(path, () => {
      const drafts = this.#draftsOf(names);
      return drafts.make(given.name, data, withContext(opts, this.#metadata, drafts.defaults), `${path}.opts`);
    });
    const job = { ...draft, id: draft.id ?? randomUUID(), queue: names.stored };
    if (above !== undefined) job.parents = above.map((parent) => linkTo(parent, opts));
    if (waits) job.waitsForChildren = true;
    this.#checkNew(job, path);
    const node: DraftNode = { names, job, data };
    if (above !== undefined || waits) refuseDeduplication(node, path);
    this.nodes.push(node);
    return node;
  }

  #checkNew(job: DraftNode['job'], path: string): void {
    const key = refKey(job);
    const before = this.#seen.get(key);
    if (before !== undefined) throw invalidFlow(`${path} has the jobId "${job.id}" of ${before}, which is in the same queue.`);
    this.#seen.set(key, path);
  }

  #draftsOf(names: QueueNames): Drafts {
    let drafts = this.#drafts.get(names.stored);
    if (drafts === undefined) {
      drafts = new Drafts(names, this.#options.queuesOptions?.[names.name]?.defaultJobOptions);
      this.#drafts.set(names.stored, drafts);
    }
    return drafts;
  }
}

/** A store adds several jobs as a whole or not at all, so it cannot leave one of them out. */
function refuseDeduplication({ job }: DraftNode, path: string): void {
  if (job.deduplication === undefined) return;
  throw invalidOption(
    `${path}.opts.deduplication`,
    job.deduplication.id,
    'left out for a job with a parent or children, and in a graph',
  );
}

function linkTo({ queue, id }: JobRef, opts: NonNullable<FlowJob['opts']>): ParentLink {
  const onFailure = onFailureOf(opts);
  return { queue, id, ...(onFailure !== undefined && { onFailure }) };
}

function refOf({ job: { queue, id } }: DraftNode): JobRef {
  return { queue, id };
}

/** Returns the children of a node. */
function checkNode(node: FlowJob, path: string): FlowJob[] {
  if (typeof node !== 'object' || node === null || Array.isArray(node))
    throw invalidOption(path, node, '{ name, queueName, data, opts, children }');
  FLOW_NAMES.check(node as FlowJob & Record<string, unknown>, path);
  const { opts, children = [] } = node;
  if (opts !== undefined && (typeof opts !== 'object' || opts === null))
    throw invalidOption(`${path}.opts`, opts, 'an object with job options');
  if (!Array.isArray(children)) throw invalidOption(`${path}.children`, children, 'a list of flows');
  return children;
}

/** Returns the parents of each node by name. A job runs before those that wait for it, so those are its parents. */
function parentsOf(nodes: Map<string, GraphNode>, edges: FlowGraph['edges']): Map<string, string[]> {
  const parents = new Map<string, Set<string>>();
  for (const [index, edge] of edges.entries()) {
    if (!Array.isArray(edge) || edge.length !== 2) throw invalidOption(`edges[${index}]`, edge, '[before, after]');
    for (const name of edge) if (!nodes.has(name)) throw invalidFlow(`edges[${index}] names "${name}", which is not in nodes.`);
    const [before, after] = edge;
    const known = parents.get(before);
    if (known === undefined) parents.set(before, new Set([after]));
    else known.add(after);
  }
  return new Map(Array.from(parents, ([name, above]) => [name, [...above]]));
}

/** Orders the nodes so that each stands after all its parents. Throws if there is a cycle. */
function parentsFirst(nodes: Map<string, GraphNode>, parents: Map<string, string[]>): string[] {
  const left = new Map([...nodes.keys()].map((name) => [name, parents.get(name)?.length ?? 0]));
  const children = new Map<string, string[]>();
  for (const [child, above] of parents)
    for (const parent of above) {
      const known = children.get(parent);
      if (known === undefined) children.set(parent, [child]);
      else known.push(child);
    }
  const order = [...left].filter(([, count]) => count === 0).map(([name]) => name);
  for (let next = 0; next < order.length; next += 1) {
    for (const child of children.get(order[next] as string) ?? []) {
      const count = (left.get(child) ?? 0) - 1;
      left.set(child, count);
      if (count === 0) order.push(child);
    }
  }
  if (order.length === nodes.size) return order;
  const ordered = new Set(order);
  const stuck = [...nodes.keys()].filter((name) => !ordered.has(name));
  throw invalidFlow(`The graph has a cycle through ${stuck.slice(0, 5).join(', ')}: each of these jobs would wait for itself.`);
}

function atPath<T>(path: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.message.includes(path)) throw error;
    const { code, option } = error;
    throw new HoldfastError(code, `${path}: ${error.message}`, { ...(option !== undefined && { option }), cause: error });
  }
}

function tooMany(): HoldfastError {
  return invalidFlow(
    `A flow is added in one step, so it has at most ${MAX_NODES} jobs. Let a handler add further children (opts.parent).`,
  );
}

function invalidFlow(message: string): HoldfastError {
  return new HoldfastError('INVALID_FLOW', message);
}
