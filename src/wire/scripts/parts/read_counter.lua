-- Reads `counter`. Counters are strings of 20 digits, which compare as numbers do: Lua's own
-- numbers lose digits.
counter = redis.pcall('GET', KEYS[2])
if type(counter) == 'table' then
  return counter
end
-- Never overwrite a value that is not a counter. Nor can any token follow INT64_MAX.
if counter and (#counter ~= 20 or counter:find('%D') or counter > '09223372036854775807') then
  return redis.error_reply('ERR the key of the fencing counter holds something else')
end
