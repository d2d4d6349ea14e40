-- The marks and extras of jobs in families (see store/marks.ts).

family.has, family.parse, family.read, family.write = openMarking().has, marking.parse, marking.read, marking.write
local has = family.has

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

-- Returns the marks in a text, without its extras, which may be long.
function family.marksIn(text) return tonumber(match(text or '', '^%d+')) or 0 end

function family.parentsOf(marks, fields) return has(marks, CHILD) and fields.p or {} end

function family.isSame(a, b) return a.id == b.id and a.queue == b.queue end

-- Keeps the name of the queue for jobs with many parents: see `tellParents` in family-ends.lua.
function family.noteLong(extra)
  if #extra > LONG_EXTRA then call('SET', key('own-name'), family.name) end
end

function family.setParents(id, marks, fields, parents)
  if has(marks, CHILD) then marks = marks - CHILD end
  fields.p = #parents > 0 and parents or nil
  family.noteLong(family.write(id, #parents > 0 and marks + CHILD or marks, fields))
end
