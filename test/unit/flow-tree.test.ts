// Flows and graphs as the jobs of one call. No store takes part.
import { describe, expect, test } from 'vitest';
import type { FlowGraph, FlowJob } from '../../src/queue/flow-options.js';
import { FlowDrafts } from '../../src/queue/flow-tree.js';

const node = (id: string, children: FlowJob[] = [], opts: object = {}): FlowJob => ({
  name: 'n',
  queueName: 'q',
  opts: { jobId: id, ...opts },
  children,
});

async function jobsOf(add: (drafts: FlowDrafts) => Promise<unknown>) {
  const drafts = new FlowDrafts(undefined, {});
  await add(drafts);
  return drafts.nodes.map(({ job }) => job);
}

const ofTree = (flow: FlowJob) => jobsOf((drafts) => drafts.tree(flow));
const ofGraph = (graph: FlowGraph) => jobsOf((drafts) => drafts.graph(graph));
const graphNode = (id: string) => ({ name: 'n', queueName: 'q', opts: { jobId: id } });

describe('a tree', () => {
  test('puts parents before their children, and children in their order', async () => {
    const jobs = await ofTree(node('root', [node('a', [node('c')]), node('b')]));
    expect(jobs.map(({ id }) => id)).toEqual(['root', 'a', 'c', 'b']);
    expect(jobs.map(({ parents }) => parents?.map(({ id }) => id))).toEqual([undefined, ['root'], ['a'], ['root']]);
    expect(jobs.map(({ waitsForChildren }) => waitsForChildren)).toEqual([true, true, undefined, undefined]);
  });

  test('gives a child the instruction of its option', async () => {
    const [, child] = await ofTree(node('root', [node('a', [], { failParentOnFailure: true })]));
    expect(child?.parents).toEqual([{ queue: 'q', id: 'root', onFailure: { link: 'failed', release: 'now', doom: true } }]);
  });

  test('that stands above itself is refused as a cycle', async () => {
    const root = node('root', [node('a')]);
    root.children?.[0]?.children?.push(root);
    await expect(ofTree(root)).rejects.toThrow(/flow\.children\[0\]\.children\[0\] is a job that stands above itself/);
  });

  test('takes one object twice, side by side', async () => {
    const twice: FlowJob = { name: 'n', queueName: 'q' };
    const jobs = await ofTree(node('root', [twice, twice]));
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(3);
  });

  test('refuses the same id twice in one queue, and takes it in two queues', async () => {
    await expect(ofTree(node('root', [node('a'), node('a')]))).rejects.toThrow(
      /flow\.children\[1\] has the jobId "a" of flow\.children\[0\]/,
    );
    expect(await ofTree(node('root', [node('a'), { ...node('a'), queueName: 'other' }]))).toHaveLength(3);
  });
});

describe('a graph', () => {
  const diamond: FlowGraph = {
    nodes: { first: graphNode('j1'), left: graphNode('j2'), right: graphNode('j3'), last: graphNode('j4') },
    edges: [
      ['first', 'left'],
      ['first', 'right'],
      ['left', 'last'],
      ['right', 'last'],
    ],
  };

  test('puts each job after all jobs that wait for it, with several parents', async () => {
    const jobs = await ofGraph(diamond);
    expect(jobs.map(({ id }) => id)).toEqual(['j4', 'j2', 'j3', 'j1']);
    expect(jobs.at(-1)).toMatchObject({ parents: [{ id: 'j2' }, { id: 'j3' }], shares: true });
    expect(jobs[0]).toMatchObject({ waitsForChildren: true });
    expect(jobs[0]).not.toHaveProperty('shares');
  });

  test('counts an edge that is given twice once', async () => {
    const jobs = await ofGraph({
      nodes: { a: graphNode('j1'), b: graphNode('j2') },
      edges: Array.from({ length: 2 }, () => ['a', 'b']),
    });
    expect(jobs.at(-1)?.parents).toEqual([{ queue: 'q', id: 'j2' }]);
  });

  test('with a cycle is refused, and names the jobs in it', async () => {
    const edges: FlowGraph['edges'] = [...diamond.edges, ['last', 'left']];
    await expect(ofGraph({ ...diamond, edges })).rejects.toThrow(/a cycle through /);
  });
});
