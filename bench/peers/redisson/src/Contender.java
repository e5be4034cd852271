// A contender for the benchmarks: Redisson's RedissonRedLock. The protocol is in bench/README.md.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.function.Supplier;

final class Contender {
    static final long TTL_MS = 10_000;
    /** What a command may take after its end: with a node down, queued calls can take hours. */
    static final long GRACE_MS = 30_000;

    private static final String NOTES =
            "Five RedissonClients with default settings (64 connections a node), RedissonRedLock (deprecated by its "
            + "authors, still there), its asynchronous API with a thread id a worker, no watchdog (a lease time is "
            + "given). Acquire: a script (HINCRBY, PEXPIRE) node after node, one at a time, to all nodes, not only the "
            + "quorum, then PEXPIRE on all at once; counts neither drift nor elapsed time. Release: a script (HINCRBY, "
            + "DEL, PUBLISH, SET of a latch) on all nodes at once, waits for all, then DEL of the latch, not waited "
            + "for; fails where any node did not hold the lock (unlock() of the blocking API would ignore that and go "
            + "node after node): such a release counts here as ended. A failure releases what was acquired. A command "
            + "that gets no connection is tried 5 times 0.5..2 s apart, an answer may take 3 s, so that a dead or hung "
            + "node delays each acquire and each release by seconds. Contended: lockAsync, which waits by "
            + "subscription node after node; it cannot be cancelled, so that whoever waits at the end gets the lock "
            + "and lets it go. Those who read: RReadWriteLock on each node, on one node without a quorum. A command "
            + "that has not ended 30 s after its time is given up.";

    private Nodes nodes;

    private long number(String word, long least, long most) {
        long number = word.matches("\\d{1,15}") ? Long.parseLong(word) : -1;
        if (number < least || number > most) {
            throw new IllegalArgumentException(word + " is not a number of " + least + ".." + most);
        }
        return number;
    }

    private Supplier<String> connect(List<String> addresses) throws Exception {
        if (nodes != null) {
            nodes.close();
            nodes = null;
        }
        nodes = Nodes.connect(addresses);
        return () -> "{}";
    }

    /** Does the work; the answer it returns makes its JSON after "done", so that the driver does
     * not count it. */
    private Supplier<String> run(List<String> words) throws Exception {
        String command = words.get(0);
        if (command.equals("connect") && words.size() > 1) {
            return connect(words.subList(1, words.size()));
        }
        if (!List.of("cycles", "line", "loop", "readers").contains(command)) {
            throw new UnsupportedOperationException("unsupported");
        }
        if (nodes == null) {
            throw new IllegalStateException("not connected");
        }
        if (words.size() != (command.equals("cycles") ? 4 : 7)) {
            throw new IllegalArgumentException(command + " with another number of arguments");
        }
        if (command.equals("cycles")) {
            long ms = number(words.get(2), 0, Integer.MAX_VALUE);
            long samples = number(words.get(3), 0, 100_000_000);
            return new Cycles(nodes, (int) number(words.get(1), 1, 4096), ms, (int) samples).run();
        }
        number(words.get(1), 0, 1024);
        if (command.equals("readers")) {
            long[] given = words.subList(1, 6).stream().mapToLong(word -> number(word, 0, Integer.MAX_VALUE)).toArray();
            return new Readers(nodes, given, words.get(6).equals("shared")).run();
        }
        List<Long> given = words.subList(1, 6).stream().map(word -> number(word, 0, Long.MAX_VALUE)).toList();
        return new Contention(nodes, command.equals("loop"), given, words.get(6)).run();
    }

    private Supplier<String> answer(String line) {
        try {
            return run(List.of(line.split(" ")));
        } catch (Exception e) {
            return () -> "{\"error\":" + Json.string(Json.sentence(e)) + "}";
        }
    }

    public static void main(String[] arguments) throws IOException {
        String version = System.getProperty("redisson.version") + ", Java " + System.getProperty("java.version");
        System.out.println("{\"name\":\"redisson\",\"version\":" + Json.string(version)
                + ",\"language\":\"Java\",\"notes\":" + Json.string(NOTES) + "}");
        Contender contender = new Contender();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Supplier<String> answer = contender.answer(line);
            System.out.println("done");
            System.out.println(answer.get());
        }
        System.exit(0);
    }
}
