// Clients of one resource: acquire with Redisson's own waiting, hold, release.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.redisson.api.RLock;

final class Contention {
    private static final String RESOURCE = "bench-contended";
    private static final int HANDOVERS_MAX = 20_000;

    private final List<Client> clients = new ArrayList<>();
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    private final CountDownLatch competing;
    private final long ms;
    private final long holdUs;
    private long end;

    // Guarded by this object.
    private final long[] handoverNs = new long[HANDOVERS_MAX];
    private int handovers;
    private int holders;
    private long overlaps;
    private long failed;
    private boolean wasReleased;
    private long releasedAt;

    Contention(Nodes nodes, int count, long ms, long holdUs) {
        this.ms = ms;
        this.holdUs = holdUs;
        competing = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            clients.add(new Client(nodes));
        }
    }

    Supplier<String> run() throws Exception {
        long start = System.nanoTime();
        end = start + TimeUnit.MILLISECONDS.toNanos(ms);
        clients.forEach(Client::acquire);
        boolean inTime = competing.await(ms + Contender.GRACE_MS, TimeUnit.MILLISECONDS);
        timer.shutdown();
        double seconds = (System.nanoTime() - start) / 1e9;
        if (!inTime) {
            throw new TimeoutException(competing.getCount() + " of " + clients.size()
                    + " clients had not ended 30 s after the time was over");
        }
        return () -> report(seconds);
    }

    private synchronized String report(double seconds) {
        String grants = clients.stream().map(client -> Long.toString(client.grants)).collect(Collectors.joining(","));
        return "{\"grants\":[" + grants + "],\"seconds\":" + seconds
                + ",\"handover_us\":" + Json.microseconds(handoverNs, handovers)
                + ",\"failed\":" + failed + ",\"overlaps\":" + overlaps + "}";
    }

    private synchronized void granted() {
        if (wasReleased && handovers < HANDOVERS_MAX) {
            handoverNs[handovers++] = System.nanoTime() - releasedAt;
        }
        wasReleased = false;
        if (holders > 0) {
            overlaps++;
        }
        holders++;
    }

    private synchronized void releases() {
        holders--;
        wasReleased = true;
        releasedAt = System.nanoTime();
    }

    private synchronized void failed() {
        failed++;
    }

    private final class Client {
        private final RLock lock;
        private final long thread;
        private long grants;

        Client(Nodes nodes) {
            lock = nodes.lock(RESOURCE);
            thread = nodes.newThread();
        }

        void acquire() {
            if (System.nanoTime() >= end) {
                competing.countDown();
                return;
            }
            lock.lockAsync(Contender.TTL_MS, TimeUnit.MILLISECONDS, thread).whenComplete((held, error) -> {
                if (error == null) {
                    hold();
                } else {
                    failed();
                    CompletableFuture.runAsync(this::acquire);
                }
            });
        }

        private void hold() {
            granted();
            boolean counts = System.nanoTime() < end;
            grants += counts ? 1 : 0;
            if (counts && holdUs > 0) {
                timer.schedule(this::release, holdUs, TimeUnit.MICROSECONDS);
            } else {
                release();
            }
        }

        private void release() {
            releases();
            lock.unlockAsync(thread).whenComplete((released, error) -> acquire());
        }
    }
}
