// Many clients of one resource: each acquires with the library's own waiting, holds, releases, and begins again.
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const RESOURCE = "bench-contended";
const HANDOVERS_MAX = 20_000;

// The lock has been granted to this client at `now`.
async function hold(fight, index, now) {
  fight.overlaps += fight.holders++ > 0;
  if (!fight.over.aborted) {
    fight.grants[index]++;
    if (fight.released !== undefined && fight.handovers.length < HANDOVERS_MAX) {
      fight.handovers.push(Math.round((now - fight.released) * 10_000) / 10);
    }
    fight.released = undefined;
    if (fight.holdUs > 0) {
      await sleep(fight.holdUs / 1000); // to the millisecond: Node has no finer timer
    }
  }
  fight.holders--;
}

async function client(fight, index) {
  while (!fight.over.aborted) {
    try {
      const lock = await fight.locks.acquire(RESOURCE, fight.over);
      await hold(fight, index, performance.now());
      fight.released = performance.now();
      await fight.locks.release(lock);
    } catch (error) {
      if (!fight.over.aborted) {
        fight.failed++;
        fight.error ??= error.message;
      }
    }
  }
}

export async function contend(locks, clients, ms, holdUs) {
  const fight = {
    locks,
    holdUs,
    over: AbortSignal.timeout(ms),
    grants: Array(clients).fill(0),
    holders: 0,
    overlaps: 0,
    failed: 0,
    handovers: [],
    released: undefined, // when a release was last called; undefined once a grant has followed
    error: undefined,
  };
  setMaxListeners(clients, fight.over);
  const began = performance.now();
  await Promise.all(fight.grants.map((_, index) => client(fight, index)));
  return {
    grants: fight.grants,
    seconds: Math.min(performance.now() - began, ms) / 1000, // in which grants were counted
    handover_us: fight.handovers,
    failed: fight.failed,
    overlaps: fight.overlaps,
    error: fight.error,
  };
}
