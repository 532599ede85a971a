//! A hand-written loop: a `Vec` of boxed trait objects, called one after the other, which read and
//! write slots of one slice by index. No metrics, no failures, no trigger, no messages.
//!
//! Boxed, because a loop over components of several types needs at least dynamic dispatch; with
//! static types the compiler would inline everything, and no loop would remain.

use core::hint::black_box;

use super::measure::{Figure, Gauge, Run};
use super::shape::{Kind, Shape, mix_times};
use crate::failure::Failure;

pub(crate) const NAME: &str = "static_loop";

/// A node of the loop.
trait Call {
    fn call(&mut self, slots: &mut [u64]);

    /// Its sum.
    fn sum(&self) -> u64 {
        0
    }
}

struct Source {
    out: usize,
    n: u64,
}

impl Call for Source {
    fn call(&mut self, slots: &mut [u64]) {
        self.n += 1;
        slots[self.out] = self.n;
    }
}

struct Mix {
    from: usize,
    out: usize,
    n_turns: u32,
}

impl Call for Mix {
    fn call(&mut self, slots: &mut [u64]) {
        slots[self.out] = mix_times(slots[self.from], self.n_turns);
    }
}

struct Sink {
    from: Vec<usize>,
    sum: u64,
}

impl Call for Sink {
    fn call(&mut self, slots: &mut [u64]) {
        for &from in &self.from {
            self.sum = self.sum.wrapping_add(slots[from]);
        }
    }

    fn sum(&self) -> u64 {
        self.sum
    }
}

/// Runs a shape in a loop.
///
/// # Errors
///
/// If the sum is wrong.
pub(crate) fn run(run: &Run<'_>) -> Result<Figure, Failure> {
    let mut nodes = nodes(run.shape);
    let mut slots = vec![0_u64; nodes.len()];
    let (mut gauge, spent) = Gauge::new(run);
    for epoch in 1..=run.n_epochs() {
        gauge.at(epoch);
        for node in &mut nodes {
            node.call(black_box(&mut slots));
        }
    }
    let total = nodes.iter().map(|node| node.sum()).fold(0, u64::wrapping_add);
    run.figure(NAME, total, spent.get().copied())
}

fn nodes(shape: &Shape) -> Vec<Box<dyn Call>> {
    let node = |(out, node): (usize, &super::shape::Node)| -> Box<dyn Call> {
        match node.kind {
            Kind::Source => Box::new(Source { out, n: 0 }),
            Kind::Mix(n_turns) => Box::new(Mix { from: node.inputs[0], out, n_turns }),
            Kind::Sink => Box::new(Sink { from: node.inputs.clone(), sum: 0 }),
        }
    };
    shape.nodes.iter().enumerate().map(node).collect()
}
