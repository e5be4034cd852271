// redis-semaphore's RedlockMutex on ioredis, as a contender.
import { RedlockMutex } from "redis-semaphore";

import { run } from "./contender.mjs";

const plain = { lockTimeout: 10_000, refreshInterval: 0 };
const once = { ...plain, acquireAttemptsLimit: 1 };
const patient = { ...plain, acquireTimeout: Infinity };
const notes =
  "RedlockMutex; acquire and release wait for all nodes; no drift, no validity: the time that an " +
  "acquire took is not measured; errors of a release are ignored; no timeout: with a hung node " +
  "nothing returns, which ends here with an error after 25 s; with a dead one an acquire waits " +
  "until ioredis gives up, 10 s and more; no automatic refresh (refreshInterval 0)";

run({ name: "redis-semaphore", library: "redis-semaphore", notes }, (clients) => {
  // A mutex for each lock, as its README has it.
  const acquire = async (resource, options, signal) => {
    const mutex = new RedlockMutex(clients, resource, options);
    await mutex.acquire(signal);
    return mutex;
  };
  return {
    tryAcquire: (resource) => acquire(resource, once),
    acquire: (resource, signal) => acquire(resource, patient, signal),
    release: (mutex) => mutex.release(),
  };
});
