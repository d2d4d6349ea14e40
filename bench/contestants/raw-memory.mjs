// The raw limit of memory: two lists and a loop, with payloads as JSON text, since a queue keeps no references to its callers' objects.
/** Between them the event loop gets its turn, or nobody would hear how far it is. */
const TURNS = 500;

export async function open() {
  const waiting = [];
  const finished = [];
  let next = 0;
  return {
    add: async (data) => waiting.push(JSON.stringify(data)),
    addBulk: async (list) => {
      for (const data of list) waiting.push(JSON.stringify(data));
    },
    work: async ({ concurrency }, handle, onDone) => {
      let turns = 0;
      const turn = async () => {
        while (next < waiting.length) {
          const batch = waiting.slice(next, next + concurrency);
          next += batch.length;
          const results = await Promise.all(batch.map((text) => handle(JSON.parse(text))));
          for (const result of results) {
            finished.push(JSON.stringify(result ?? null));
            onDone();
          }
          turns += 1;
          if (turns % TURNS === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      };
      await turn();
      return { stop: async () => undefined };
    },
    close: async () => undefined,
  };
}
