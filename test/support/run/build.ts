// Tests that run the package as its users do (threads, child processes, the tarball) take it from dist/, so it is brought up
// to date before any test. In the middle of a change that does not compile yet, the tests of the inside can still run.
import { build } from '../../../scripts/build.mjs';

export default async function setup(): Promise<void> {
  try {
    await build();
  } catch (error) {
    console.error(`dist/ is older than src/, and tests that use it may mislead.\n${String(error)}`);
  }
}
