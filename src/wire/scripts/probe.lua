-- Tells which commands of our scripts cannot be run here. Changes nothing but the marker.
-- ARGV[1]: a key that nobody has, ARGV[2]: the marker of this manager, or '', ARGV[3]: the mark of
-- this connection, ARGV[4] and more: those of the manager's other nodes.
-- Returns {lines of 'command error', mark}. The mark is one of the others that the marker holds, or
-- ours, which it holds now; an error says why there is none.
local lines, key, writable = {}, ARGV[1], false
local function try(needed, command, ...)
  -- Redis 7 has a question that runs nothing, logs nothing and counts nothing. It needs all
  -- arguments: with fewer, some servers crash.
  local done, answer = pcall(redis.acl_check_cmd, command, ...)
  local words = type(answer) == 'table' and answer.err or answer
  if done then
    writable = writable or answer and command == 'set'
    -- Denied is the command or the key.
    words = not answer and (needed and redis.pcall(command, ...).err or writable and 'NOPERM')
    if answer and command == 'set' then
      -- Only a write shows a replica that may not tell its role. This one sets nothing.
      words = redis.pcall(command, ...)
      words = type(words) == 'table' and words.err
    end
  elseif not words:find('Invalid command', 1, true) then
    words = redis.pcall(command, ...)
    words = type(words) == 'table' and words.err
  end
  if words then
    lines[#lines + 1] = command .. ' ' .. words:sub(1, 120)
  end
end
try(true, 'set', key, '', 'XX')
try(true, 'get', key)
try(true, 'pttl', key)
try(true, 'pexpire', key, 1)
try(true, 'del', key)
try(false, 'exists', key)
try(false, 'zadd', key, 'XX', 0, key)
try(false, 'zpopmin', key)
try(false, 'zrem', key, key)
try(false, 'zrank', key, key)
try(false, 'zscore', key, key)
try(false, 'zrange', key, 0, 0)
try(false, 'zremrangebyscore', key, 0, 0)
try(false, 'hget', key, key)
try(false, 'hdel', key, key)
if writable then
  try(false, 'hset', key, key, key)
  try(false, 'publish', 'redlock:probe', '')
end
local mark = ''
if ARGV[2] ~= '' then
  -- One server is one, whatever the database. It is ours again after the script.
  redis.pcall('SELECT', '0')
  mark = redis.pcall('GET', ARGV[2])
  for i = 4, #ARGV do
    if mark == ARGV[i] then
      redis.pcall('PEXPIRE', ARGV[2], 600000)
      return {table.concat(lines, string.char(10)), mark}
    end
  end
  if type(mark) ~= 'table' then
    mark = redis.pcall('SET', ARGV[2], ARGV[3], 'PX', 600000)
  end
  mark = mark.err or ARGV[3]
end
return {table.concat(lines, string.char(10)), mark}
