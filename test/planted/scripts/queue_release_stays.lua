-- RELEASE that does not leave the queue.
local holder, queue = redis.pcall('GET', KEYS[1]), KEYS[1] .. ARGV[2]
if holder ~= ARGV[1] then
  -- include parts/check_holder.lua
  return holder and -1 or 0
end
if not ARGV[3] and redis.pcall('EXISTS', queue) == 1 then
  local time = redis.pcall('TIME')
  -- include parts/serve.lua
  local done, served = pcall(function()
    return serve()
  end)
  if done and served then
    return 2
  end
end
return redis.call('DEL', KEYS[1])
