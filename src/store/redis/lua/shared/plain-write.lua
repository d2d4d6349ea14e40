-- A part of the fast path (see plain-settle.lua): writes what the parts before it have made of jobs and locks.
if fits then
  local bound = base .. ':bound:' .. session
  if size > 1 and nextFence == firstFence + size then
    call('ZREMRANGEBYSCORE', bound, format(DIGITS, firstFence), format(DIGITS, nextFence - 1))
  elseif size > 0 then
    call('ZREM', bound, unpack(settled))
  end
  if #runs > 0 then call('HSET', base .. ':run', unpack(runs)) end
  if values then call('HSET', base .. ':value', unpack(values)) end
  if size > 0 then call('ZADD', base .. ':completed', unpack(scores)) end
  if claims > 0 then
    if not grouped then used = claims end
    if used > 0 then call('ZREMRANGEBYRANK', base .. ':wait', 0, used - 1) end
    call('ZADD', bound, unpack(locks))
  end
end
