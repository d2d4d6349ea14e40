-- Entries of deduplication, made on first use: see lanes.lua.
local entries
local function openEntries()
  if entries then return entries end
  entries = {}
  $include{deduplication}
  return entries
end
