// Where to look for the tests of an area.
export const engines = (...names) => names.map((name) => `test/engines/${name}.test.ts`);
export const unit = (...names) => names.map((name) => `test/unit/${name}.test.ts`);
export const faults = (...names) => names.map((name) => `test/faults/${name}.test.ts`);
export const conformance = (...stores) => stores.map((store) => `test/conformance/${store}.test.ts`);
