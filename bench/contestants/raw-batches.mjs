// The loop that all raw limits with a store share: one call finishes what was claimed before and claims the next jobs. No locks, no
// sessions, no retries, no events: nothing that a queue is for.

/** `exchange(finished, count)` answers `[id, text]` pairs. Goes on until it is told to stop; an empty store is asked again after a pause. */
export function exchangeLoop(exchange, batch, handle, onDone) {
  let stopped = false;
  const turn = async () => {
    let claimed = [];
    while (!stopped || claimed.length > 0) {
      const next = await exchange(
        claimed.map(([id]) => id),
        stopped ? 0 : batch,
      );
      for (let n = 0; n < claimed.length; n += 1) onDone();
      await Promise.all(next.map(([, text]) => handle(JSON.parse(text))));
      if (next.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      claimed = next;
    }
  };
  const running = turn();
  running.catch((error) => console.error(error.message));
  return async () => {
    stopped = true;
    await running;
  };
}
