// Workers that acquire and release, each its own names. Each is a loop of awaits in one thread.
const NAMES = 8;

const microseconds = (ms) => Math.round(ms * 10_000) / 10;

async function worker(run, names) {
  for (let i = 0; performance.now() < run.end; i = (i + 1) % NAMES) {
    try {
      const began = performance.now();
      const lock = await run.locks.tryAcquire(names[i]);
      const acquired = performance.now();
      await run.locks.release(lock);
      run.cycles++;
      if (run.acquire.length < run.samples) {
        run.acquire.push(microseconds(acquired - began));
        run.release.push(microseconds(performance.now() - acquired));
      }
    } catch (error) {
      run.failed++;
      run.error ??= error.message;
    }
  }
}

export async function cycles(locks, workers, ms, samples) {
  const names = Array.from({ length: workers }, (_, w) => Array.from({ length: NAMES }, (_, i) => `bench-${w}-${i}`));
  const began = performance.now();
  const run = { locks, samples, end: began + ms, cycles: 0, failed: 0, acquire: [], release: [], error: undefined };
  await Promise.all(names.map((own) => worker(run, own)));
  return {
    cycles: run.cycles,
    failed: run.failed,
    seconds: (performance.now() - began) / 1000,
    acquire_us: run.acquire,
    release_us: run.release,
    error: run.error,
  };
}
