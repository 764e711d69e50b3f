// Threads, whose stack limits the runtime asks the C library for, that allocate.
use std::collections::HashMap;
use std::thread;

fn main() {
    let threads: Vec<_> = (0..16u64)
        .map(|i| {
            thread::spawn(move || {
                let mut m = HashMap::new();
                for k in 0..2000u64 {
                    m.insert(k, format!("{} {}", i, k));
                }
                m.values().map(|s| s.len()).sum::<usize>()
            })
        })
        .collect();
    println!("{}", threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>());
}
