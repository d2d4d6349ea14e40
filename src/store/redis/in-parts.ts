// Long lists go to Redis in parts, one after the other: each part is atomic and keeps Redis from others for about a millisecond.
const AT_ONCE = 100;

export async function inParts<I, O>(items: I[], work: (part: I[]) => Promise<O[]>): Promise<O[]> {
  if (items.length <= AT_ONCE) return items.length === 0 ? [] : work(items);
  const results: O[] = [];
  for (let first = 0; first < items.length; first += AT_ONCE) {
    const replies = await work(items.slice(first, first + AT_ONCE));
    for (const reply of replies) results.push(reply);
  }
  return results;
}
