/**
 * What was promised, or undefined when the time is over first: what comes later is nobody's. An answer that came while the event loop was
 * blocked is in time: it is read before the immediate. The timer keeps the process alive.
 */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve, undefined), ms);
  });
  try {
    return await Promise.race([answer, over]);
  } finally {
    clearTimeout(timer);
  }
}
