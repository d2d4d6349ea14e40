// Defects of what lies between two servers: of the product's relays, and of the servers that carry out what these ask for.
const EARLY = 'no parent before its children';
const IN_VAIN = ['no parent waits in vain', 'every job ends', 'one letter per failure'];
const RELAYS = 'store/redis/state/relays.js';

/** Numbers that no clock has come to. */
let fresh = 2 ** 52;

const DEFECTS = {
  'no process relays what another process has left': {
    violates: IN_VAIN,
    modules: {
      [RELAYS]: ({ Relays }) => ({
        Relays: class extends Relays {
          async relay() {
            return { delivered: 0, more: false };
          }
        },
      }),
    },
  },
  'no sweep asks after the children of a parent that has waited for long': {
    violates: IN_VAIN,
    modules: {
      [RELAYS]: ({ Relays }) => ({
        Relays: class extends Relays {
          async check() {}
        },
      }),
    },
  },
  'a message is deleted before it is applied': {
    violates: [...IN_VAIN, 'every end counts once', 'nothing acknowledged is lost'],
    modules: {
      [RELAYS]: ({ Relays }) => ({
        Relays: class extends Relays {
          constructor({ run, ...options }) {
            super({ ...options, run: deletingFirst(run) });
          }
        },
      }),
    },
  },
  'a message is applied as often as it comes': {
    violates: ['a finish is final', 'one state per job', 'one lock per job', 'every end counts once', 'one letter per failure'],
    store: (right) => ({
      deliver: (name, [to, from, tag, most, ...messages]) => {
        const renumbered = messages.map((part, index) => (index % 2 === 0 ? String((fresh += 1)) : part));
        return right.deliver(name, [to, from, tag, most, ...renumbered]);
      },
    }),
  },
  'a child on the other server has no link': {
    violates: [EARLY, 'every end counts once'],
    modules: { 'store/memory/family.js': () => ({ linkFar: () => undefined }) },
  },
};

function deletingFirst(run) {
  return async (script, queue, args) => {
    const reply = await run(script, queue, args);
    const isRead = script === 'outgoing' && args[1] === '' && args[2] > 1;
    if (isRead && reply.length > 0) await run(script, queue, [args[0], reply.at(-2), 1]);
    return reply;
  };
}

/** `onlyOn`: the store of the simulation that these defects belong to. */
export const SPLIT_DEFECTS = Object.fromEntries(
  Object.entries(DEFECTS).map(([name, defect]) => [name, { ...defect, onlyOn: 'split' }]),
);
