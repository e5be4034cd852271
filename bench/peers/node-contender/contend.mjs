// Many clients of one resource: each acquires with the library's own waiting, holds and releases,
// once or again and again.
import { setMaxListeners } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const RESOURCE = "bench-contended";

// After the end. Who cannot be cancelled may get the lock until then, and is unserved after it.
const OVERTIME_MS = 10_000;

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
    const acquiring = contest.locks.acquire(RESOURCE, contest.over);
    try {
      const lock = await Promise.race([acquiring, contest.late]);
      await hold(contest, wait);
      await contest.locks.release(lock);
    } catch (error) {
      if (contest.over.aborted) {
        acquiring.then((lock) => contest.locks.release(lock)).catch(() => {});
      } else {
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
  contest.late = sleep((endUs - nowUs()) / 1000 + OVERTIME_MS, undefined, { ref: false }).then(() => {
    throw new Error("still waits");
  });
  contest.late.catch(() => {});
  const all = Array.from({ length: clients }, (_, number) => client(contest, number, beginUs + number * spaceUs));
  if (contest.freeUs > 0) {
    all.push(client(contest, clients, 0));
  }
  await Promise.all(all);
  return { waits: contest.waits, failed: contest.failed, error: contest.error };
}
