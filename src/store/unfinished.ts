import { HoldfastError } from '../errors.js';

export function unfinished(what: string): never {
  throw new HoldfastError('OPTION_UNSUPPORTED', `This store has no ${what} yet.`, { option: what });
}
