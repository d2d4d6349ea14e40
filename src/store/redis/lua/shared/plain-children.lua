-- A part of the fast path (see plain-settle.lua), for completed jobs that are marked as children alone: it reads the links to them in queues
-- that lie in the same slot. plain-ends.lua writes the ends. A link that is not as the child was added, and the last pending link of a
-- parent, which may move the parent, do not fit: their ends become messages, as in family-ends.lua.
-- ends: by parent, its queue, id, the key of its links (nil if another slot may have it), and lists of children, bonds and values.
-- ARGV behind the outcomes: the name of this queue, and for each queue in the same slot that it has sent messages to, its name and its tag.
local ends
if fits and children then
  local extras, isNear = call('HMGET', base .. ':extra', unpack(settled)), {}
  local byName, lastExtra, parents, targets = {}, nil, nil, nil
  ends = {}
  for at = 17 + 3 * size, #ARGV, 2 do
    -- The layout is the last counter. A queue of a newer layout, or one that was forgotten, is left to deliver.lua.
    local itsLayout = ARGV[at + 1] == base and layout
    if not itsLayout then
      local text = call('GETRANGE', ARGV[at + 1] .. ':meta', 8 * #PACKED - 16, 8 * #PACKED - 9)
      itsLayout = #text == 8 and struct.unpack('<d', text)
    end
    isNear[ARGV[at]] = itsLayout == LAYOUT and ARGV[at + 1]
  end
  for i = 1, size do
    local extra = children[i] and extras[i]
    if children[i] and extra ~= lastExtra then
      local isRead, fields = pcall(cjson.decode, extra and #extra <= LONG_EXTRA and extra:sub(1, 2) == '2,' and extra:sub(3))
      parents, targets, lastExtra = isRead and fields.p, {}, extra
      fits = parents ~= nil and parents ~= false
      if not fits then break end
      for n = 1, #parents do
        local parent = parents[n]
        local name = parent.queue .. '\n' .. parent.id
        local known = byName[name]
        if not known then
          local tag = isNear[parent.queue]
          known = { queue = parent.queue, id = parent.id, links = tag and tag .. ':links:' .. parent.id, ids = {}, bonds = {}, values = {} }
          byName[name], ends[#ends + 1] = known, known
        end
        targets[n] = known
      end
    end
    for n = 1, children[i] and #targets or 0 do
      local ids, known = targets[n].ids, targets[n]
      local last = #ids + 1
      ids[last], known.bonds[last], known.values[last] = settled[i], parents[n].n, ARGV[15 + 3 * i]
    end
  end
end
