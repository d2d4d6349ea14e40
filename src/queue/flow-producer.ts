// FlowProducer adds flows: trees and graphs of jobs over any queues, in which a job waits for its children. It must never run a job, and
// knows no engine: the store adds a flow as a whole or not at all.
import { HoldfastError } from '../errors.js';
import { StoreAccess } from '../handle/access.js';
import type { JobContext } from '../handle/job-context.js';
import { Job } from '../handle/job.js';
import { type JobRef, LINK_STATES } from '../job/family.js';
import { checkGivenId, queueNames, queueNamesOf } from '../job/names.js';
import { checkInteger, invalidOption } from '../runtime/check.js';
import { ClosingEmitter } from '../runtime/emitter.js';
import { checkTelemetry, SpanKind, Tracing } from '../runtime/telemetry.js';
import { Turns } from '../runtime/turns.js';
import type { JobRecord, NewJob } from '../job/record.js';
import { readLinks } from '../handle/read-links.js';
import type { AddReply, Store } from '../store/contract/index.js';
import { leaseStore } from '../store/open.js';
import { AddBatcher, sizeOf } from './add-batcher.js';
import { recordOf } from './draft.js';
import { checkAdded } from './family-adds.js';
import { type DraftNode, FlowDrafts } from './flow-tree.js';
import {
  checkProducerOptions,
  FLOW_ADD_NAMES,
  type FlowGraph,
  type FlowJob,
  type FlowOptions,
  type FlowProducerOptions,
  GET_FLOW_NAMES,
  type GetFlowOptions,
  type JobNode,
  MAX_FLOW_BYTES,
} from './flow-options.js';
import { checkTransaction } from './queue-options.js';

/** A flow of more jobs is sent to the store in a turn of its own. */
const MANY = 1_000;
/** Children that `getFlow` reads at once. */
const READ_AT_ONCE = 100;

export interface FlowProducerEvents {
  error: [error: Error];
  /** An add was acknowledged again, after an outage that was emitted as `error`. `outageMs`: its length. */
  recovered: [outageMs: number];
}

export class FlowProducer extends ClosingEmitter<{ [E in keyof FlowProducerEvents]: FlowProducerEvents[E] }> {
  readonly opts: Readonly<FlowProducerOptions>;
  readonly #access: StoreAccess;
  readonly #batcher: AddBatcher;
  readonly #tracing: Tracing | undefined;
  /** The adds under way. A large add prepares its jobs in several turns of the event loop before it reaches the batcher. */
  readonly #adds = new Set<Promise<unknown>>();

  constructor(opts: FlowProducerOptions = {}) {
    super();
    const checked = checkProducerOptions(opts);
    this.opts = checked;
    const onError = (error: Error): void => void this.emit('error', error);
    const onRecovered = (outageMs: number): void => void this.emit('recovered', outageMs);
    this.#access = new StoreAccess('FlowProducer', leaseStore(opts.connection, onError), onError);
    this.#batcher = new AddBatcher({
      queue: 'flows',
      open: () => this.#access.open(),
      timeoutMs: checked.addTimeoutMs,
      onError,
      onRecovered,
    });
    const telemetry = checkTelemetry(opts.telemetry);
    this.#tracing = telemetry === undefined ? undefined : new Tracing(telemetry, 'flows', onError);
  }

  get closing(): Promise<void> | undefined {
    return this.#access.closing;
  }

  /**
   * Adds a tree of jobs: each waits until its children have ended. Resolves when the store has stored all of it. In a `transaction`
   * (PostgreSQL) the whole flow appears with the commit, or never.
   */
  add(flow: FlowJob, opts: FlowOptions = {}): Promise<JobNode> {
    return this.#traced('addFlow', nameOf(flow), async (metadata) => {
      const drafts = this.#drafts(opts, metadata);
      const root = await drafts.tree(flow);
      return this.#nodeOf(root, await this.#store(drafts.nodes, checkTransaction(opts.transaction)));
    });
  }

  /** Adds several flows, each in a step of its own. All are checked before the first one is added. */
  async addBulk(flows: FlowJob[], opts: FlowOptions = {}): Promise<JobNode[]> {
    if (!Array.isArray(flows)) throw invalidOption('flows', flows, 'a list of flows');
    return this.#traced('addBulkFlows', String(flows.length), async (metadata) => {
      const checked: { root: DraftNode; nodes: DraftNode[] }[] = [];
      for (const flow of flows) {
        const drafts = this.#drafts(opts, metadata);
        checked.push({ root: await drafts.tree(flow), nodes: drafts.nodes });
      }
      const transaction = checkTransaction(opts.transaction);
      const added: JobNode[] = [];
      for (const { root, nodes } of checked) added.push(await this.#nodeOf(root, await this.#store(nodes, transaction)));
      return added;
    });
  }

  /** Adds a graph of jobs, in which a job may have several parents. Returns the jobs by their names. */
  addGraph<Name extends string>(graph: FlowGraph<Name>, opts: FlowOptions = {}): Promise<Record<Name, Job>> {
    return this.#traced('addGraph', '', async (metadata) => {
      const drafts = this.#drafts(opts, metadata);
      const named = await drafts.graph(graph);
      if (named.size === 0) return {} as Record<Name, Job>;
      const known = await this.#store(drafts.nodes, checkTransaction(opts.transaction));
      const turns = new Turns();
      const jobs: [string, Job][] = [];
      for (const [name, node] of named) {
        if (turns.isOver) await turns.next();
        jobs.push([name, this.#handle(node, known)]);
      }
      return Object.fromEntries(jobs) as Record<Name, Job>;
    });
  }

  /** Reads a tree from the store. Returns undefined if its root does not exist. Children that were removed are left out. */
  async getFlow(opts: GetFlowOptions): Promise<JobNode | undefined> {
    const { id, queueName, prefix = this.opts.prefix, depth = 10, maxChildren = 20 } = GET_FLOW_NAMES.checked(opts);
    checkInteger('depth', depth, { min: 1 });
    checkInteger('maxChildren', maxChildren, { min: 1 });
    const { stored } = queueNames(queueName, prefix);
    const store = await this.#access.ready();
    return this.#read(store, { queue: stored, id: checkGivenId(id) }, depth, maxChildren);
  }

  async waitUntilReady(): Promise<void> {
    await this.#access.ready();
  }

  /** Waits for the adds under way. */
  close(): Promise<void> {
    return this.#access.close(async () => {
      await Promise.allSettled(this.#adds);
      await this.#batcher.close();
    });
  }

  disconnect(): Promise<void> {
    return this.close();
  }

  /** `metadata`: the context of the span, which all jobs carry. */
  #drafts(opts: FlowOptions, metadata: string | undefined): FlowDrafts {
    if (this.closing !== undefined) throw this.#access.closed();
    return new FlowDrafts(this.opts.prefix, FLOW_ADD_NAMES.checked(opts), metadata);
  }

  async #traced<V>(operation: string, destination: string, work: (metadata: string | undefined) => Promise<V>): Promise<V> {
    const add = this.#inSpan(operation, destination, work);
    this.#adds.add(add);
    try {
      return await add;
    } finally {
      this.#adds.delete(add);
    }
  }

  async #inSpan<V>(operation: string, destination: string, work: (metadata: string | undefined) => Promise<V>): Promise<V> {
    const tracing = this.#tracing;
    if (tracing === undefined) return work(undefined);
    const open = tracing.open(SpanKind.PRODUCER, operation, destination);
    return tracing.around(open, () => work(tracing.metadataOf(open)));
  }

  /** Returns the jobs that existed before, by the nodes for which they stand. */
  async #store(nodes: DraftNode[], transaction: object | undefined): Promise<Map<DraftNode, JobRecord>> {
    const [root] = nodes;
    const queue = root?.job.parents?.[0]?.queue ?? root?.job.queue ?? '';
    const alone = isAlone(nodes);
    const jobs = nodes.map(({ job }) => (alone ? ownJob(job) : job));
    checkBytes(jobs);
    // A store in this process adds all of it in one turn of the event loop.
    if (jobs.length > MANY) await new Turns().next();
    const replies = checkAdded(jobs, await this.#batcher.addFamily(jobs, queue, transaction));
    const known = new Map<DraftNode, JobRecord>();
    for (const [index, node] of nodes.entries()) {
      const { status, id } = replies[index] as AddReply;
      if (status === 'duplicate') known.set(node, recordOf(node.job, id));
      if (status === 'deduplicated') known.set(node, await this.#existing(node, id));
    }
    return known;
  }

  /** The add itself is done: if the job cannot be read, its handle shows the given values. */
  async #existing({ job }: DraftNode, id: string): Promise<JobRecord> {
    const found = this.#access.ready().then((store) => store.jobs(job.queue, [id]));
    return (await found.catch(() => undefined))?.jobs[0] ?? recordOf(job, id);
  }

  async #nodeOf(node: DraftNode, known: Map<DraftNode, JobRecord>): Promise<JobNode> {
    const turns = new Turns();
    const made = new Map<DraftNode, JobNode>();
    const steps = [node];
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      if (turns.isOver) await turns.next();
      made.set(step, { job: this.#handle(step, known) });
      steps.push(...(step.children ?? []));
    }
    for (const [draft, shown] of made)
      if (draft.children !== undefined) shown.children = draft.children.map((child) => made.get(child) as JobNode);
    return made.get(node) as JobNode;
  }

  #handle(node: DraftNode, known: Map<DraftNode, JobRecord>): Job {
    const { job, data, names } = node;
    const context = this.#contextOf(names.stored);
    const found = known.get(node);
    if (found === undefined) return new Job(context, recordOf(job, job.id), { data });
    return new Job(context, found, found.id === job.id ? { duplicate: true, data } : { duplicate: true });
  }

  async #read(store: Store, { queue, id }: JobRef, depth: number, maxChildren: number): Promise<JobNode | undefined> {
    const [record] = (await store.jobs(queue, [id])).jobs;
    return record === undefined ? undefined : this.#readNode(store, queue, record, depth, maxChildren);
  }

  async #readNode(store: Store, queue: string, record: JobRecord, depth: number, maxChildren: number): Promise<JobNode> {
    const node: JobNode = { job: new Job(this.#contextOf(queue), record) };
    const turns = new Turns();
    if (depth <= 1) return node;
    const links = await readLinks(store, queue, record.id, [...LINK_STATES], maxChildren);
    if (links.length === 0) return node;
    node.children = [];
    for (let first = 0; first < links.length; first += READ_AT_ONCE) {
      const part = links.slice(first, first + READ_AT_ONCE);
      const children = await Promise.all(part.map(({ child }) => this.#read(store, child, depth - 1, maxChildren)));
      for (const child of children) if (child !== undefined) node.children.push(child);
      // A store in this process may reply in the same turn of the event loop.
      if (turns.isOver) await turns.next();
    }
    return node;
  }

  #contextOf(stored: string): JobContext {
    const { name, prefix } = queueNamesOf(stored);
    return {
      name,
      prefix,
      stored,
      ready: () => this.#access.ready(),
      settle: async (outcome) => {
        const { results } = await (await this.#access.ready()).settle(stored, [outcome]);
        return { status: results[0] ?? 'missing' };
      },
    };
  }
}

/** True for a flow of one job without family. Its add is that of `queue.add`: it may be deduplicated. */
function isAlone([root, ...others]: DraftNode[]): boolean {
  return others.length === 0 && root?.job.parents === undefined && root?.job.waitsForChildren !== true;
}

/** The job as its own queue adds it. */
function ownJob({ queue: _queue, ...job }: DraftNode['job']): NewJob {
  return job;
}

function checkBytes(jobs: NewJob[]): void {
  const bytes = jobs.reduce((sum, job) => sum + sizeOf(job), 0);
  if (bytes <= MAX_FLOW_BYTES) return;
  const message = `The data of the flow takes ${bytes} bytes. A flow is added in one step, so it has at most ${MAX_FLOW_BYTES}: put large data elsewhere, and its key into the job.`;
  throw new HoldfastError('PAYLOAD_TOO_LARGE', message);
}

/** Returns the name for a span. An argument that is no flow has none here; a later check rejects it. */
function nameOf(flow: FlowJob | undefined): string {
  return typeof flow === 'object' && flow !== null ? `${flow.queueName}.${flow.name}` : '';
}
