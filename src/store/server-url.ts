// The URL of a server, checked before a driver reads it. Drivers take what is left of a password with a / in it for the host, the port or
// the database, and put it into errors. An error of this file never holds any part of the URL.
import { HoldfastError } from '../errors.js';

const ENCODE = 'In the user and the password, write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25.';

/** `looksLike`: a URL of this store, for the error. */
export function readServerUrl(url: string, looksLike: string): URL {
  const parsed = parseServerUrl(url);
  if (parsed !== undefined) return parsed;
  throw new HoldfastError('INVALID_CONNECTION', `The url of the store cannot be read. It looks like ${looksLike}. ${ENCODE}`, {
    option: 'url',
  });
}

/** As a number, or as the text of a variable of the environment. A driver that meets a bad one leaves its socket open. */
export function checkPort(port: unknown): void {
  if (port === undefined || port === null || port === '') return;
  const number = typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port;
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= 65_535) return;
  throw new HoldfastError('INVALID_OPTION', 'port must be a whole number from 0 to 65535.', { option: 'port' });
}

/** Undefined: it cannot be read, or only in a way that was not meant. */
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

/** An @ behind the host mostly ends the password of a URL that was cut within it, at a /, a ? or a #. Elsewhere it can be written as %40. */
function isTorn({ pathname, search, hash }: URL): boolean {
  return (pathname + search + hash).includes('@');
}
