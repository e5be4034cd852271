// Many clients of one resource: each acquires with the library's own waiting, holds and releases,
// once or again and again.
import { setMaxListeners } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const RESOURCE = "bench-contended";

// CLOCK_MONOTONIC.
const nowUs = () => Number(process.hrtime.bigint() / 1000n);

// To the millisecond: Node has no finer timer.
const sleepUntil = (us) => sleep(Math.max((us - nowUs()) / 1000, 0));

// The lock has been granted for this wait: [client, began, granted, released].
async function hold(contest, wait) {
  const granted = nowUs();
  if (granted >= contest.endUs) {
    return;
  }
  const value = contest.counter && Number(readFileSync(contest.counter, "utf8"));
  await sleepUntil(wait[0] === contest.clients ? contest.freeUs : granted + contest.holdUs);
  if (contest.counter) {
    writeFileSync(contest.counter, String(value + 1));
  }
  wait[2] = granted;
  wait[3] = nowUs();
}

async function client(contest, number, beginUs) {
  await sleepUntil(beginUs);
  do {
    const wait = [number, nowUs(), 0, 0];
    contest.waits.push(wait);
    try {
      const lock = await contest.locks.acquire(RESOURCE, contest.over);
      await hold(contest, wait);
      await contest.locks.release(lock);
    } catch (error) {
      if (!contest.over.aborted) {
        contest.failed++;
        contest.error ??= error.message;
      }
    }
  } while (contest.again && nowUs() < contest.endUs);
}

// `last` is FREE_US of a line, or COUNTER of a loop.
export async function contend(locks, again, [clients, holdUs, beginUs, spaceUs, endUs], last) {
  const contest = {
    locks,
    again,
    clients,
    holdUs,
    endUs,
    freeUs: again ? 0 : Number(last),
    counter: again && last !== "-" ? last : undefined,
    over: AbortSignal.timeout(Math.max(Math.ceil((endUs - nowUs()) / 1000), 0)),
    waits: [],
    failed: 0,
    error: undefined,
  };
  setMaxListeners(clients + 1, contest.over);
  const all = Array.from({ length: clients }, (_, number) => client(contest, number, beginUs + number * spaceUs));
  if (contest.freeUs > 0) {
    all.push(client(contest, clients, 0));
  }
  await Promise.all(all);
  return { waits: contest.waits, failed: contest.failed, error: contest.error };
}
