/* Threads that compile, allocate outside the heap, and end. */
import java.nio.ByteBuffer;

class RingThreads {
	public static void main(String[] args) throws Exception {
		Thread[] threads = new Thread[8];
		long[] sums = new long[threads.length];
		for (int i = 0; i < threads.length; i++) {
			int n = i;
			threads[i] = new Thread(() -> {
				for (int k = 1; k < 300; k++) {
					ByteBuffer b = ByteBuffer.allocateDirect(k * 100);
					for (int j = 0; j < k * 100; j++)
						b.put(j, (byte) (j * n));
					for (int j = 0; j < k * 100; j++)
						sums[n] += b.get(j);
				}
			});
			threads[i].start();
		}
		long sum = 0;
		for (int i = 0; i < threads.length; i++) {
			threads[i].join();
			sum += sums[i];
		}
		System.out.println(sum);
	}
}
