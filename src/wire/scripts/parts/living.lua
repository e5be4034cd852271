-- Makes living(token), which tells whether the waiter of this token can be served: its entry in
-- `waiters` is good at `now`, and somebody listens on its channel. It returns what the entry says:
-- ttl, serial, id, channel. PUBSUB NUMSUB counts who subscribes to the channel itself. PUBLISH also
-- counts patterns, with which a monitor would make the dead look alive. Where NUMSUB is refused,
-- `heard` is what PUBLISH says. The waiters of a process share a channel, which is asked for once.
-- An entry with a channel of others is not good: whoever wrote it may have no right to it.
local heard = {}
local function living(token)
  local entry = redis.call('HGET', waiters, token) or ''
  local good_until, ttl, serial, id, channel = entry:match('^(%d+) (%d+) (%d+) (%d+) (redlock:%w+)$')
  if not good_until or now > tonumber(good_until) then
    return nil
  end
  if heard[channel] == nil then
    local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
    heard[channel] = count.err and true or count[2] > 0
  end
  -- Who asks gets its answer.
  return (heard[channel] or token == ARGV[1]) and ttl, serial, id, channel
end
