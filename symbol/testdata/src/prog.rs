// Generics, closures, traits and a panic, for the comparison with addr2line.
use std::collections::BTreeMap;

trait Shape {
    fn area(&self) -> f64;
}

struct Rect<T> {
    w: T,
    h: T,
}

impl<T: Into<f64> + Copy> Shape for Rect<T> {
    #[inline(never)]
    fn area(&self) -> f64 {
        self.w.into() * self.h.into()
    }
}

#[inline(never)]
fn total(shapes: &[Box<dyn Shape>], scale: impl Fn(f64) -> f64) -> f64 {
    shapes.iter().map(|s| scale(s.area())).sum()
}

fn main() {
    let n = std::env::args().count() as u32;
    let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
    let mut names = BTreeMap::new();
    for i in 0..n * 20 {
        shapes.push(if i % 2 == 0 { Box::new(Rect { w: i, h: 2 }) } else { Box::new(Rect { w: i as f32, h: 0.5 }) });
        *names.entry(format!("n{}", i % 5)).or_insert(0) += i;
    }
    println!("{} {}", total(&shapes, |a| a * 1.5), names.len());
    let last = shapes.len();
    println!("{}", shapes[last + n as usize - 2].area());
}
