-- RELEASE without comparing the token.
return redis.call('DEL', KEYS[1])
