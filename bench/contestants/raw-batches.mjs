// The loop that all raw limits with a store share: one call finishes what was claimed before and claims the next jobs. No locks, no
// sessions, no retries, no events: nothing that a queue is for.

/** Long enough that nothing is warm from the last look when a job comes to an idle queue. */
const LOOK_MS = 100;

/**
 * `exchange(finished, count)` answers `[id, text]` pairs. Goes on until it is told to stop; an empty store is asked again when somebody in
 * this process has added a job (`wake`), and now and then.
 */
export function exchangeLoop(exchange, batch, handle, onDone) {
  let stopped = false;
  let woken = false;
  let onWake;
  const pause = async () => {
    if (!woken) {
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, LOOK_MS);
        onWake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    woken = false;
  };
  const turn = async () => {
    let claimed = [];
    while (!stopped || claimed.length > 0) {
      const next = await exchange(
        claimed.map(([id]) => id),
        stopped ? 0 : batch,
      );
      for (let n = 0; n < claimed.length; n += 1) onDone();
      await Promise.all(next.map(([, text]) => handle(JSON.parse(text))));
      if (next.length === 0) await pause();
      claimed = next;
    }
  };
  const running = turn();
  running.catch((error) => console.error(error.message));
  return {
    wake: () => {
      woken = true;
      onWake?.();
    },
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}
