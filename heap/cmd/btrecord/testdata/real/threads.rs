// Eight threads allocate 2,000 blocks each, and keep 200 of them.
use std::thread;

#[no_mangle]
#[inline(never)]
pub fn block(n: usize) -> Vec<u8> {
    let mut b = vec![1u8; n]; // no tail call
    b[n / 2] = 2;
    b
}

fn main() {
    let threads: Vec<_> = (0..8)
        .map(|t| {
            thread::spawn(move || {
                let mut sum = 0;
                for i in 0..2000 {
                    let b = block(100 + i % 50);
                    sum += b.len();
                    if i % 10 == t {
                        std::mem::forget(b);
                    }
                }
                sum
            })
        })
        .collect();
    let sum: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("{}", sum);
}
