// node-redlock on ioredis, as a contender.
import Redlock from "redlock";

import { run } from "./contender.mjs";

const TTL_MS = 10_000;
const notes =
  "acquire and release return at the quorum; the time that an acquire took is not held against " +
  "the ttl; scripts (EVALSHA) for both; no timeout: what a hung or dead node has not answered " +
  "waits in ioredis; (d): retryCount -1 and default delays, cannot be cancelled; keys of a " +
  "failed try stay until the last one";

run({ name: "node-redlock", library: "redlock", notes }, (clients) => {
  const once = new Redlock(clients, { retryCount: 0 });
  const patient = new Redlock(clients, { retryCount: -1 });
  return {
    tryAcquire: (resource) => once.acquire([resource], TTL_MS),
    acquire: (resource) => patient.acquire([resource], TTL_MS),
    release: (lock) => lock.release(),
  };
});
