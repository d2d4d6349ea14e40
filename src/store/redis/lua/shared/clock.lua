-- The first part of every script: the keys of one queue, Redis' clock, and limits that parts share. It makes no function, because Redis
-- makes a script's functions anew in every run, and most runs take a fast path that needs none of those in tools.lua.
-- KEYS[1] is the queue's hash tag. Every other key is the tag and a suffix, so that all keys of a queue lie in one slot.
local base = KEYS[1]
-- A local variable is found faster than a global one.
local ARGV, unpack, tonumber = ARGV, unpack, tonumber
local call, format, match, concat, ceil, floor = redis.call, string.format, string.match, table.concat, math.ceil, math.floor

local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
-- Now in ms, with a fraction. Scripts round expiries up, so that nothing ends early.
local now = micros / 1000

-- The format of numbers as digits. Lua's own conversion keeps 14 digits, but ticks have 16. %d is faster than %.0f and needs a 64-bit long.
local DIGITS = format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f'

-- Limits that several parts share: the events that a queue keeps; the length in bytes up to which the texts of claimed jobs are joined;
-- and how long the last add of a caller is remembered.
local EVENTS_KEPT, SHORT, ADD_REMEMBERED_MS = 10000, 65536, 15 * 60 * 1000
-- The length in bytes from which the extras of a job are not read as a whole to tell its parents: see family-ends.lua.
local LONG_EXTRA = 8192
-- Limits in bytes (see budget.ts): a reply, a value that is copied into an event, and half of the event log.
local REPLY_BYTES, EVENT_VALUE_BYTES, EVENTS_SEGMENT = 4194304, 4096, 4194304
-- Replaces a value in an event if the value is too large. It cannot be confused with a value, because no JSON text of Holdfast ends in
-- a space. Readers of older versions, which do not know it, see null.
local LARGE_VALUE = 'null '
