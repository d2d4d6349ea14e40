// Where to look for the tests of an area.
export const engines = (...names) => names.map((name) => `test/engines/${name}.test.ts`);
export const unit = (...names) => names.map((name) => `test/unit/${name}.test.ts`);
export const faults = (...names) => names.map((name) => `test/faults/${name}.test.ts`);
export const conformance = (...stores) => stores.map((store) => `test/conformance/${store}.test.ts`);
export const stores = (...names) => names.map((name) => `test/stores/${name}.test.ts`);

/** Mutants of one file that the same tests should notice, each as a list: name, text, replacement, and what differs. */
export const inFile = (file, shared, ...mutants) =>
  mutants.map(([name, find, replace, own]) => ({ name, file, find, replace, ...shared, ...own }));
