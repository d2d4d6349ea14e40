-- The marks and extras of jobs in families (see store/marks.ts).

function family.has(marks, bit) return marks % (2 * bit) >= bit end
local has = family.has

-- Returns the marks and extras of a text; 0 and an empty table for a plain job.
function family.parse(text)
  local marks, extras = match(text or '0,{}', '^(%d+),(.*)$')
  local ok, fields = pcall(cjson.decode, extras or '{}')
  return tonumber(marks) or 0, ok and fields or {}
end

function family.read(id) return family.parse(call('HGET', key('extra'), id)) end

function family.write(id, marks, fields)
  call('HSET', key('extra'), id, digits(marks) .. ',' .. (next(fields) and cjson.encode(fields) or '{}'))
end

-- Sets a bit of a job. `job` was read in this script.
function family.mark(job, bit)
  local marks, fields = family.read(job.id)
  if not has(marks, bit) then family.write(job.id, marks + bit, fields) end
  if not job.marked then
    job.marked = true
    store({ job })
  end
  raiseForMarks(digits(bit))
end

function family.parentsOf(marks, fields) return has(marks, CHILD) and fields.p or {} end

function family.isSame(a, b) return a.id == b.id and a.queue == b.queue end

function family.setParents(id, marks, fields, parents)
  if has(marks, CHILD) then marks = marks - CHILD end
  fields.p = #parents > 0 and parents or nil
  family.write(id, #parents > 0 and marks + CHILD or marks, fields)
end
