// The steps of one job of the memory store, with their limits.
import { MAX_STEP_BYTES, MAX_STEPS, type Step } from '../../contract/index.js';

/** The steps in the order in which they were recorded. */
export class StepList {
  readonly #values = new Map<string, string>();
  #bytes = 0;

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  /** Returns false if there is no room. The caller has checked that the name is free. */
  add({ name, value }: Step): boolean {
    const bytes = sizeOf(name, value);
    if (this.#values.size >= MAX_STEPS || this.#bytes + bytes > MAX_STEP_BYTES) return false;
    this.#values.set(name, value);
    this.#bytes += bytes;
    return true;
  }

  /** Deletes the step of this name and all later ones. */
  dropFrom(name: string): void {
    let drops = false;
    for (const [known, value] of this.#values) {
      drops ||= known === name;
      if (!drops) continue;
      this.#values.delete(known);
      this.#bytes -= sizeOf(known, value);
    }
  }

  all(): Step[] {
    return Array.from(this.#values, ([name, value]) => ({ name, value }));
  }
}

function sizeOf(name: string, value: string): number {
  return Buffer.byteLength(name) + Buffer.byteLength(value);
}
