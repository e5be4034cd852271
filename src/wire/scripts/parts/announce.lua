-- Tells observers: 'PTTL token' of who was `served`, or '' if the lock is free. Errors are ignored.
redis.pcall('PUBLISH', 'redlock:leader:' .. KEYS[1], served and redis.call('PTTL', KEYS[1]) .. ' ' .. served or '')
