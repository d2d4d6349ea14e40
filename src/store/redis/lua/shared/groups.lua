-- Groups of jobs. Queues without groups must not pay for these functions.
-- The functions are made on first use, because Redis makes a script's functions anew in every run.
local groups
local function openGroups()
  if groups then return groups end
  groups = {}
  $include{group-states group-places group-members group-turns}
  return groups
end
