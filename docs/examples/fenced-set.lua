-- KEYS: the data, its highest fencing token.
-- ARGV: the fencing token, the new data; without new data it only claims the data.
-- Returns 1 (done) or 0 (refused).
local fence, highest = ARGV[1], redis.call('GET', KEYS[2]) or '0'
if not string.find(fence, '^[1-9]%d*$') then
    return redis.error_reply('ERR a fencing token is a decimal number without leading zeros')
end
-- Compare as text, because Lua's numbers are doubles. The longer text is the larger number; of two
-- texts of the same length, the one that sorts later.
if #fence < #highest or (#fence == #highest and fence < highest) then
    return 0
end
redis.call('SET', KEYS[2], fence)
if ARGV[2] then
    redis.call('SET', KEYS[1], ARGV[2])
end
return 1
