// Workers that acquire and release, each its own resources: tries, not waits.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.redisson.api.RLock;

final class Cycles {
    private static final int NAMES = 8;
    private static final long NO_WAIT = 0;

    private final List<Worker> workers = new ArrayList<>();
    private final long ms;
    private final long[] acquireNs;
    private final long[] releaseNs;
    private final AtomicInteger sampled = new AtomicInteger();
    private final LongAdder cycles = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final AtomicReference<String> firstFailure = new AtomicReference<>();
    private final CountDownLatch working;
    private long end;

    Cycles(Nodes nodes, int count, long ms, int samples) {
        this.ms = ms;
        acquireNs = new long[samples];
        releaseNs = new long[samples];
        working = new CountDownLatch(count);
        for (int w = 0; w < count; w++) {
            workers.add(new Worker(nodes, w));
        }
    }

    Supplier<String> run() throws Exception {
        long start = System.nanoTime();
        end = start + TimeUnit.MILLISECONDS.toNanos(ms);
        workers.forEach(Worker::acquire);
        boolean inTime = working.await(ms + Contender.GRACE_MS, TimeUnit.MILLISECONDS);
        double seconds = (System.nanoTime() - start) / 1e9;
        if (!inTime) {
            throw new TimeoutException(working.getCount() + " of " + workers.size()
                    + " workers had not ended 30 s after the time was over");
        }
        return () -> report(seconds);
    }

    private String report(double seconds) {
        int samples = Math.min(sampled.get(), acquireNs.length);
        String error = firstFailure.get();
        return "{\"cycles\":" + cycles + ",\"failed\":" + failed + ",\"seconds\":" + seconds
                + ",\"acquire_us\":" + Json.microseconds(acquireNs, samples)
                + ",\"release_us\":" + Json.microseconds(releaseNs, samples)
                + (error == null ? "" : ",\"error\":" + Json.string(error)) + "}";
    }

    private int sample() {
        return sampled.get() < acquireNs.length ? sampled.getAndIncrement() : acquireNs.length;
    }

    private final class Worker {
        private final RLock[] locks = new RLock[NAMES];
        private final long thread;
        private int next;

        Worker(Nodes nodes, int w) {
            thread = nodes.newThread();
            for (int i = 0; i < NAMES; i++) {
                locks[i] = nodes.lock("bench-" + w + "-" + i);
            }
        }

        void acquire() {
            long begun = System.nanoTime();
            if (begun >= end) {
                working.countDown();
                return;
            }
            RLock lock = locks[next];
            next = (next + 1) % NAMES;
            lock.tryLockAsync(NO_WAIT, Contender.TTL_MS, TimeUnit.MILLISECONDS, thread).whenComplete((held, error) -> {
                if (error == null && held) {
                    release(lock, begun);
                } else {
                    fail(error);
                }
            });
        }

        private void fail(Throwable error) {
            failed.increment();
            firstFailure.compareAndSet(null, error == null ? "tryLockAsync: false" : Json.sentence(error));
            // Elsewhere: a client that fails at once would call back deeper and deeper.
            CompletableFuture.runAsync(this::acquire);
        }

        private void release(RLock lock, long begun) {
            long acquired = System.nanoTime();
            int sample = sample();
            lock.unlockAsync(thread).whenComplete((released, error) -> {
                cycles.increment();
                if (sample < acquireNs.length) {
                    acquireNs[sample] = acquired - begun;
                    releaseNs[sample] = System.nanoTime() - acquired;
                }
                acquire();
            });
        }
    }
}
