// The messages between a process and its lock thread, in both directions. They are cloned, so they are plain data.
import type { ErrorCode } from '../errors.js';
import type { Notice, SessionEnd, SweepReply } from '../store/contract/index.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import type { BlockSeen, DetachedLocks, RunLimit, SessionPlan } from '../session/renewer.js';
import type { SessionBuffers } from '../session/session-memory.js';

export interface ThreadData {
  /** The main loop's last beat and its last long pause (see watchdog.ts). */
  beat: SharedArrayBuffer;
  /** Turns from 0 to 1 when everything was handed back at exit. */
  handedBack: SharedArrayBuffer;
  /** Why the stack of the main loop can never be taken. */
  noStack?: string | undefined;
}

export type ToThread =
  | { type: 'keep'; plan: SessionPlan; buffers: SessionBuffers; descriptor: StoreDescriptor }
  | { type: 'grow'; sessionId: string; block: SharedArrayBuffer }
  | { type: 'limit'; sessionId: string; limit: RunLimit }
  | { type: 'unlimit'; sessionId: string; token: string }
  /** The session has jobs that were claimed ahead. */
  | { type: 'watchAhead'; sessionId: string }
  | { type: 'detach'; sessionId: string; locks: DetachedLocks }
  /** The thread replies with 'released'. */
  | { type: 'release'; sessionId: string; handBackAtExit: boolean }
  /** The process exits: hand everything back, then set `handedBack`. */
  | { type: 'handBack'; how: SessionEnd };

export type FromThread =
  | { type: 'renewed'; sessionId: string }
  | { type: 'noticed'; sessionId: string; notices: Notice[] }
  | { type: 'lost'; sessionId: string }
  | { type: 'swept'; sessionId: string; reply: Omit<SweepReply, 'more'> }
  /** A probe found schedules that are owing. */
  | { type: 'undone'; sessionId: string }
  | { type: 'failed'; sessionId: string; what: Attempt; error: PlainError }
  /** The main loop was blocked: sent once when the block is over, and also when a ceiling stops renewal. */
  | { type: 'blocked'; sessionId: string; blockedMs: number; ceiling: boolean; seen?: BlockSeen }
  | { type: 'released'; sessionId: string };

/** The call that failed in the thread: opening the store, renewing, or sweeping. */
export type Attempt = 'opening' | 'renewing' | 'sweeping';

/** An error as plain data: errors lose their class and code in cloning. */
export interface PlainError {
  code: ErrorCode;
  message: string;
  retryable: boolean;
}
