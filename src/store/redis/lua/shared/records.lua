-- Jobs as they are handed out, as columns: ids, runs, jobs, reasons, stacks, values, progress.
local function records(ids)
  return {
    ids, fetch(key('run'), ids), fetch(key('job'), ids), fetch(key('reason'), ids), fetch(key('stack'), ids),
    fetch(key('value'), ids), fetch(key('progress'), ids),
  }
end
