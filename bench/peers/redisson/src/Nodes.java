// The connections: one RedissonClient a node, and locks across all of them.
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

final class Nodes {
    private static final long CONNECT_MS = 10_000;

    private final List<RedissonClient> clients;
    private final AtomicLong threads = new AtomicLong();

    private Nodes(List<RedissonClient> clients) {
        this.clients = clients;
    }

    private static RedissonClient client(String address) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + address);
        return Redisson.create(config);
    }

    /** Answers once a lock could be taken and released. */
    static Nodes connect(List<String> addresses) throws Exception {
        ExecutorService executor = Executors.newCachedThreadPool();
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(CONNECT_MS);
        List<CompletableFuture<RedissonClient>> created = addresses.stream()
                .map(address -> CompletableFuture.supplyAsync(() -> client(address), executor)).toList();
        executor.shutdown();
        try {
            CompletableFuture.allOf(created.toArray(CompletableFuture[]::new))
                    .get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
            Nodes nodes = new Nodes(created.stream().map(CompletableFuture::join).toList());
            RLock lock = nodes.lock("bench-connect-" + UUID.randomUUID());
            long thread = nodes.newThread();
            lock.lockAsync(Contender.TTL_MS, TimeUnit.MILLISECONDS, thread)
                    .thenCompose(locked -> lock.unlockAsync(thread)).toCompletableFuture()
                    .get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
            return nodes;
        } catch (ExecutionException | TimeoutException e) {
            created.forEach(client -> client.thenAccept(RedissonClient::shutdown));
            throw e instanceof ExecutionException ? e
                    : new TimeoutException("no lock could be taken and released within 10 s");
        }
    }

    /** Owns locks, and may lock its own again: never the same twice, since a command given up may
     * still be at work. */
    long newThread() {
        return threads.incrementAndGet();
    }

    /** The object may be used any number of times. */
    RLock lock(String name) {
        return new RedissonRedLock(clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new));
    }

    /** The half of a read-write lock that reads or writes; of one node without any quorum. */
    RLock readWriteLock(String name, boolean reads) {
        RLock[] locks = clients.stream().map(client -> client.getReadWriteLock(name))
                .map(lock -> reads ? lock.readLock() : lock.writeLock()).toArray(RLock[]::new);
        return locks.length == 1 ? locks[0] : new RedissonRedLock(locks);
    }

    void close() {
        clients.parallelStream().forEach(RedissonClient::shutdown);
    }
}
