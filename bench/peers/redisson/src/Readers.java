// Clients that read a few resources, and write some of them, with Redisson's read-write lock.
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.redisson.api.RLock;

final class Readers {
    private static final int SAMPLES = 200_000;

    /** The waits of those who read, or of those who write. */
    private static final class Waits {
        private final long[] ns = new long[SAMPLES];
        private final AtomicInteger grants = new AtomicInteger();
        private final AtomicLong longestNs = new AtomicLong();

        void add(long waitedNs) {
            int number = grants.getAndIncrement();
            if (number < SAMPLES) {
                ns[number] = waitedNs;
            }
            longestNs.accumulateAndGet(waitedNs, Math::max);
        }

        String microseconds() {
            return Json.microseconds(ns, Math.min(grants.get(), SAMPLES));
        }
    }

    private final Nodes nodes;
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    private final int clients;
    private final int readsPercent;
    private final int resources;
    private final long holdUs;
    private final long ms;
    private final boolean shared;
    private final Waits reads = new Waits();
    private final Waits writes = new Waits();
    private final LongAdder failed = new LongAdder();
    private final AtomicReference<String> firstFailure = new AtomicReference<>();
    private final CountDownLatch working;
    private long end;

    Readers(Nodes nodes, long[] given, boolean shared) {
        this.nodes = nodes;
        this.shared = shared;
        clients = (int) given[0];
        readsPercent = (int) given[1];
        resources = (int) given[2];
        holdUs = given[3];
        ms = given[4];
        working = new CountDownLatch(clients);
    }

    Supplier<String> run() throws Exception {
        long start = System.nanoTime();
        end = start + TimeUnit.MILLISECONDS.toNanos(ms);
        for (int i = 0; i < clients; i++) {
            new Client(i).acquire();
        }
        boolean inTime = working.await(ms + Contender.GRACE_MS, TimeUnit.MILLISECONDS);
        double seconds = (System.nanoTime() - start) / 1e9;
        timer.shutdown();
        if (!inTime) {
            throw new TimeoutException(working.getCount() + " clients had not ended 30 s after the time was over");
        }
        return () -> report(seconds);
    }

    private String report(double seconds) {
        String error = firstFailure.get();
        return "{\"cycles\":" + (reads.grants.get() + writes.grants.get()) + ",\"failed\":" + failed + ",\"seconds\":"
                + seconds + ",\"reads\":" + reads.grants + ",\"writes\":" + writes.grants + ",\"write_longest_us\":"
                + writes.longestNs.get() / 1000.0 + ",\"read_us\":" + reads.microseconds() + ",\"write_us\":"
                + writes.microseconds() + (error == null ? "" : ",\"error\":" + Json.string(error)) + "}";
    }

    private final class Client {
        private final Random random;
        private final long thread = nodes.newThread();

        Client(int number) {
            random = new Random(number);
        }

        void acquire() {
            long begun = System.nanoTime();
            if (begun >= end) {
                working.countDown();
                return;
            }
            boolean isRead = random.nextInt(100) < readsPercent;
            String name = "bench-read-" + random.nextInt(resources);
            RLock lock = shared ? nodes.readWriteLock(name, isRead) : nodes.lock(name);
            lock.lockAsync(Contender.TTL_MS, TimeUnit.MILLISECONDS, thread).whenComplete((held, error) -> {
                if (error != null) {
                    fail(error);
                    return;
                }
                (isRead ? reads : writes).add(System.nanoTime() - begun);
                timer.schedule(() -> release(lock), holdUs, TimeUnit.MICROSECONDS);
            });
        }

        private void fail(Throwable error) {
            failed.increment();
            firstFailure.compareAndSet(null, Json.sentence(error));
            // Elsewhere: a client that fails at once would call back deeper and deeper.
            CompletableFuture.runAsync(this::acquire);
        }

        private void release(RLock lock) {
            lock.unlockAsync(thread).whenComplete((released, error) -> acquire());
        }
    }
}
