// Adds flows over two queues: a root, a few children and sometimes grandchildren. Some children fail for good, and their options say what
// that means for the parent. The history says what was tried and what was acknowledged.
import { setTimeout as sleep } from 'node:timers/promises';
import { CHILD_QUEUE, LETTER_QUEUE, ROOT_QUEUE } from '../flows.mjs';
import { jobName } from '../job-name.mjs';
import { note, plan, random } from './actor.mjs';

const EVERY_MS = 700;
const ON_FAILURE = ['failParentOnFailure', 'ignoreDependencyOnFailure', 'removeDependencyOnFailure'];

let number = 0;

function nodeOf(queueName, level = 0) {
  number += 1;
  const key = `${plan.who}-flow-${number}`;
  const fails = level > 0 && random.chance(0.1);
  const children = [];
  const count = level === 0 ? random.between(1, 4) : level === 1 && random.chance(0.2) ? 1 : 0;
  for (let left = count; left > 0; left -= 1) children.push(nodeOf(level === 1 ? ROOT_QUEUE : CHILD_QUEUE, level + 1));
  const lasts = random.chance(0.1) ? [300, 2000] : [1, 20];
  const data = { key, does: fails ? 'fail' : 'little', lastsMs: random.between(...lasts), stubborn: random.chance(0.5) };
  const opts = { ...plan.kept, jobId: `flow-${key}`, deadLetter: LETTER_QUEUE };
  if (level > 0) opts[random.of(ON_FAILURE)] = true;
  return { name: data.does, queueName, data, opts, children };
}

const nameOf = ({ queueName, opts }) => jobName(queueName, opts.jobId);

function nodesOf(node) {
  return [node, ...node.children.flatMap(nodesOf)];
}

/** `flows`: a FlowProducer. Answers how to stop. */
export function startFlowing(flows) {
  const over = new AbortController();
  const done = (async () => {
    while (!over.signal.aborted) {
      const nodes = nodesOf(nodeOf(ROOT_QUEUE));
      note('flow', { nodes: nodes.map((node) => ({ id: nameOf(node), children: node.children.map(nameOf) })) });
      try {
        await flows.add(nodes[0]);
        note('added', { jobs: nodes.map((node) => ({ id: nameOf(node), key: node.data.key })) });
      } catch ({ code, message }) {
        // Not acknowledged: it may be there or not.
        note('refused', { code, message });
      }
      await sleep(EVERY_MS * (0.5 + random.next()), undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    over.abort();
    await done;
    await flows.close();
  };
}
