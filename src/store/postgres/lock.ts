// Extends the locks of jobs. An extension needs the current token.
import type { Extension, ExtendStatus } from '../contract/index.js';
import { splitToken } from './record.js';
import type { Engine } from './driver/engine.js';

export function extend({ server }: Engine, queue: string, extensions: Extension[]): Promise<ExtendStatus[]> {
  const tokens = extensions.map(({ token }) => splitToken(token));
  return server.call<ExtendStatus[]>('extend', {
    name: queue,
    ids: extensions.map(({ jobId }) => jobId),
    owners: tokens.map(({ session }) => session),
    fences: tokens.map(({ fence }) => fence),
    durations: extensions.map(({ durationMs }) => durationMs),
    alone: extensions.some(({ alone }) => alone) ? extensions.map(({ alone }) => alone === true) : undefined,
  });
}
