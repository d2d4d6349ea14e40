-- Reads job records as columns: ids, runs, jobs, reasons, stacks, values, progress, losses, extras (empty without marked jobs).
local COLUMNS = { 'run', 'job', 'reason', 'stack', 'value', 'progress', 'lost' }

-- Returns the records of the first jobs that fit into `left` bytes, and their size in bytes. If `left` is a whole reply, at least one
-- record is returned. The large texts are measured before any text is copied.
local function records(ids, left)
  left = left or REPLY_BYTES
  local fitting, bytes = {}, 0
  for i = 1, #ids do
    local size = call('HSTRLEN', key('job'), ids[i]) + call('HSTRLEN', key('value'), ids[i])
      + call('HSTRLEN', key('stack'), ids[i]) + call('HSTRLEN', key('progress'), ids[i])
    if bytes + size > left and (i > 1 or left < REPLY_BYTES) then break end
    bytes = bytes + size
    fitting[i] = ids[i]
  end
  local columns = { fitting }
  for i = 1, #COLUMNS do columns[i + 1] = fetch(key(COLUMNS[i]), fitting) end
  local marked = false
  for i = 1, #fitting do marked = marked or columns[2][i] and match(columns[2][i], '^%u') end
  columns[#columns + 1] = marked and fetch(key('extra'), fitting) or {}
  return columns, bytes
end
