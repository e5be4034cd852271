// Clients of one resource: acquire with Redisson's own waiting, hold, release; once or many times.
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
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

    private final Nodes nodes;
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    private final int clients;
    private final long holdUs;
    private final long beginUs;
    private final long spaceUs;
    private final long endUs;
    private final long freeUs;
    private final boolean again;
    private final Path counter;
    private final CountDownLatch competing;

    // Guarded by this object.
    private final List<long[]> waits = new ArrayList<>();
    private long failed;

    /** The last word is FREE_US of a line, or COUNTER of a loop. */
    Contention(Nodes nodes, boolean again, List<Long> given, String last) {
        this.nodes = nodes;
        this.again = again;
        clients = given.get(0).intValue();
        holdUs = given.get(1);
        beginUs = given.get(2);
        spaceUs = given.get(3);
        endUs = given.get(4);
        freeUs = again ? 0 : Long.parseLong(last);
        counter = again && !last.equals("-") ? Path.of(last) : null;
        competing = new CountDownLatch(clients + (freeUs > 0 ? 1 : 0));
    }

    /** CLOCK_MONOTONIC. */
    private static long nowUs() {
        return System.nanoTime() / 1000;
    }

    private void at(long us, Runnable what) {
        timer.schedule(what, us - nowUs(), TimeUnit.MICROSECONDS);
    }

    Supplier<String> run() throws Exception {
        for (int number = 0; number < clients; number++) {
            at(beginUs + number * spaceUs, new Client(number)::acquire);
        }
        if (freeUs > 0) {
            new Client(clients).acquire();
        }
        long left = endUs / 1000 - nowUs() / 1000 + Contender.GRACE_MS;
        boolean inTime = competing.await(left, TimeUnit.MILLISECONDS);
        timer.shutdown();
        if (!inTime) {
            throw new TimeoutException(competing.getCount() + " clients had not ended 30 s after the time was over");
        }
        return this::report;
    }

    private synchronized String report() {
        return "{\"waits\":[" + waits.stream()
                .map(wait -> "[" + wait[0] + "," + wait[1] + "," + wait[2] + "," + wait[3] + "]")
                .collect(Collectors.joining(",")) + "],\"failed\":" + failed + "}";
    }

    private synchronized void add(long[] wait) {
        waits.add(wait);
    }

    private synchronized void failed() {
        failed++;
    }

    private long count(long more) {
        try {
            long value = Long.parseLong(Files.readString(counter).trim());
            if (more > 0) {
                Files.writeString(counter, Long.toString(more));
            }
            return value;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private final class Client {
        private final RLock lock = nodes.lock(RESOURCE);
        private final long thread = nodes.newThread();
        private final int number;

        Client(int number) {
            this.number = number;
        }

        void acquire() {
            long[] wait = {number, nowUs(), 0, 0};
            add(wait);
            lock.lockAsync(Contender.TTL_MS, TimeUnit.MILLISECONDS, thread).whenComplete((held, error) -> {
                if (error == null) {
                    hold(wait, nowUs());
                } else {
                    failed();
                    CompletableFuture.runAsync(this::goOn);
                }
            });
        }

        private void hold(long[] wait, long granted) {
            if (granted >= endUs) {
                lock.unlockAsync(thread).whenComplete((released, error) -> goOn());
                return;
            }
            long value = counter == null ? 0 : count(0);
            at(number == clients ? freeUs : granted + holdUs, () -> {
                if (counter != null) {
                    count(value + 1);
                }
                synchronized (Contention.this) {
                    wait[2] = granted;
                    wait[3] = nowUs();
                }
                lock.unlockAsync(thread).whenComplete((released, error) -> goOn());
            });
        }

        private void goOn() {
            if (again && nowUs() < endUs) {
                acquire();
            } else {
                competing.countDown();
            }
        }
    }
}
