-- Bits of the marks of a job (see store/marks.ts), and its extras: see deduplication.lua.
local CHILD, PARENT, UNIQUE, IS_NEXT, STEPS, DOOMED, LETTER, CANCELLED = 2, 4, 8, 16, 32, 64, 128, 256

-- Returns a field of the extras of a marked job; nil if the job lacks the bit that the field belongs to. extra: false if it has none.
local function extraOf(extra, bit, field)
  local marks, extras = match(extra or '0,', '^(%d+),(.*)$')
  if marks % (2 * bit) < bit then return nil end
  local ok, fields = pcall(cjson.decode, extras)
  return ok and fields[field] or nil
end
