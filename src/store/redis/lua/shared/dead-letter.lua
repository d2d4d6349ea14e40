-- Dead letters: a job that fails for good sends a copy to another queue.

-- Call it before the texts of the job are deleted. how: see `family.ended`.
function family.sendLetter(id, to, how)
  local job, text = find(id), call('HGET', key('job'), id)
  if not job or not text or not to then return end
  local tail = job.key and ',' .. job.key or job.group and ';' .. job.group or ''
  family.send(to, 'l', id, fenceOf(how.token), how.text, how.made, digits(floor(now)), job.priority .. tail, to, text)
end

-- Adds the lock key or the group of the job to the origin of its letter. tail: as `sendLetter` writes it.
function family.readTail(origin, tail)
  if tail:sub(1, 1) == ',' then origin.lockKey = tail:sub(2) elseif tail ~= '' then origin.group = tail:sub(2) end
end

-- Sends a letter back: the job goes to the queue `to`, and the caller removes the letter. Returns false if the job is no letter.
function family.sendBack(job, to)
  local _, fields = family.read(job.id)
  local origin, text = fields.o, call('HGET', key('job'), job.id)
  if not origin or not text then return false end
  local extras, marks = { l = origin.deadLetter, g = origin.group }, LETTER + (origin.group and 1 or 0)
  local tail = origin.lockKey and ',' .. origin.lockKey or origin.group and ';' .. origin.group or ''
  local flags = digits(origin.priority) .. ',0,0' .. tail
  family.send(to, 's', origin.id, job.id, flags, digits(marks) .. ',' .. cjson.encode(extras), text)
  return true
end
