// What a queue of another library is called in the store. Those libraries allow any name and put a prefix before it; here neither may
// hold the characters that stores build keys with, so these are written as in a URL: two different names stay different.

/** Without a prefix, a plain name stays as it is, and `Queue` and `Worker` of the core see the same queue under it. */
export function storedName(name: string, prefix: string | undefined): string {
  // The core says what is wrong with these.
  if (typeof name !== 'string' || name === '') return name;
  return prefix === undefined || prefix === '' ? written(name) : `${written(prefix)}/${written(name)}`;
}

function written(name: string): string {
  return name.replace(/[%:{}/]/g, (character) => encodeURIComponent(character));
}
