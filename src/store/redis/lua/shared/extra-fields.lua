-- Reads and writes the marks and extras of jobs (see store/marks.ts, and deduplication.lua for the form of both).

function marking.has(marks, bit) return marks % (2 * bit) >= bit end

-- Returns the marks and extras of a text; 0 and an empty table for a plain job.
function marking.parse(text)
  local marks, extras = match(text or '0,{}', '^(%d+),(.*)$')
  local ok, fields = pcall(cjson.decode, extras or '{}')
  return tonumber(marks) or 0, ok and fields or {}
end

function marking.read(id) return marking.parse(call('HGET', key('extra'), id)) end

-- Returns the text that it has written.
function marking.write(id, marks, fields)
  local text = digits(marks) .. ',' .. (next(fields) and cjson.encode(fields) or '{}')
  call('HSET', key('extra'), id, text)
  return text
end
