import java.nio.ByteBuffer;
import java.util.*;

/** Eight threads compute, and allocate memory outside of Java's heap. */
class Threads {
    static final Set<ByteBuffer> kept = Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));

    public static void main(String[] args) throws Exception {
        long[] sums = new long[8];
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            int k = t;
            threads.add(new Thread(() -> {
                for (int i = 0; i < 100000; i++)
                    sums[k] += ("x" + i).hashCode() & 15;
                for (int i = 0; i < 100; i++)
                    kept.add(ByteBuffer.allocateDirect(10000));
            }));
        }
        for (Thread t : threads)
            t.start();
        for (Thread t : threads)
            t.join();
        System.out.println(Arrays.toString(sums) + " " + kept.size());
    }
}
