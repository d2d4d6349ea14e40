// Checks the URL of a server before a driver reads it. If a password contains a /, drivers take the rest of it for the host, the port or
// the database, and put it into errors. An error of this file never holds any part of the URL.
import { HoldfastError } from '../errors.js';

const ENCODE = 'In the user and the password, write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25.';

/** `looksLike`: an example URL of this store, for the error. */
export function readServerUrl(url: string, looksLike: string): URL {
  const parsed = parseServerUrl(url);
  if (parsed !== undefined) return parsed;
  throw new HoldfastError('INVALID_CONNECTION', `The url of the store cannot be read. It looks like ${looksLike}. ${ENCODE}`, {
    option: 'url',
  });
}

/** Accepts a number, or text from an environment variable. Checked here, because a driver that gets a bad port leaves its socket open. */
export function checkPort(port: unknown): void {
  if (port === undefined || port === null || port === '') return;
  const number = typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port;
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= 65_535) return;
  throw new HoldfastError('INVALID_OPTION', 'port must be a whole number from 0 to 65535.', { option: 'port' });
}

/** Returns undefined if the URL cannot be read, or can be read only in a way that was not meant. */
export function parseServerUrl(url: string): URL | undefined {
  try {
    const parsed = new URL(url);
    const { username, password, pathname } = parsed;
    decodeURIComponent(username + password + pathname);
    return isTorn(parsed) ? undefined : parsed;
  } catch {
    return undefined;
  }
}

/** An @ behind the host mostly means that the URL was cut inside its password, at a /, a ? or a #. Elsewhere an @ can be written as %40. */
function isTorn({ pathname, search, hash }: URL): boolean {
  return (pathname + search + hash).includes('@');
}
