// Two calls of different connections, in every order.

/** Makes two calls: one after the other in the first two rounds, and then at once. */
export async function inOrders<A, B>(round: number, one: () => Promise<A>, two: () => Promise<B>): Promise<[A, B]> {
  if (round === 0) return [await one(), await two()];
  if (round === 1) {
    const second = await two();
    return [await one(), second];
  }
  if (round % 2 === 0) return Promise.all([one(), two()]);
  const second = two();
  return Promise.all([one(), second]);
}
