//! The commit log: what became visible, in compiled order. Equal runs have equal logs, byte for
//! byte.
//!
//! Each epoch domain has a log by itself. With the times of its epochs, and what came from outside
//! and from other domains in the order of its coming, it tells all that its results depend on
//! beside the graph and the seed.
//!
//! ```text
//! "CJCL" 1  name-length name
//! 'L' length lane            it is the log of a lane that keeps its own time; else of all others
//! 'E' epoch time-ns          an epoch begins
//! 'C' edge length bytes      a value was committed: an immediate one in its epoch, any other at
//!                            the beginning of the epoch in which it is visible
//! 'I' edge length bytes      a value came from outside
//! 'A' edge length bytes      a value came from another domain
//! 'B' component iterations   the loop with this first member was ended by the clock
//! 'X' component              a component failed and ended the run
//! ```
//! Numbers are LEB128: seven bits a byte, the low ones first.

use alloc::vec::Vec;

use super::message::Message;

/// What a log begins with.
pub const MAGIC: &[u8; 5] = b"CJCL\x01";

pub(crate) fn head(out: &mut Vec<u8>, name: &str, lane: Option<&str>) {
    out.extend_from_slice(MAGIC);
    number(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
    if let Some(lane) = lane {
        out.push(b'L');
        number(out, lane.len() as u64);
        out.extend_from_slice(lane.as_bytes());
    }
}

pub(crate) fn epoch(out: &mut Vec<u8>, epoch: u64, now_ns: u64) {
    out.push(b'E');
    number(out, epoch);
    number(out, now_ns);
}

pub(crate) fn commit(out: &mut Vec<u8>, edge: u32, message: &Message) {
    value(out, b'C', edge, message);
}

pub(crate) fn input(out: &mut Vec<u8>, edge: u32, message: &Message) {
    value(out, b'I', edge, message);
}

pub(crate) fn arrival(out: &mut Vec<u8>, edge: u32, message: &Message) {
    value(out, b'A', edge, message);
}

pub(crate) fn budget(out: &mut Vec<u8>, component: usize, n_iterations: u32) {
    out.push(b'B');
    number(out, component as u64);
    number(out, n_iterations.into());
}

pub(crate) fn failure(out: &mut Vec<u8>, component: usize) {
    out.push(b'X');
    number(out, component as u64);
}

fn value(out: &mut Vec<u8>, tag: u8, edge: u32, message: &Message) {
    out.push(tag);
    number(out, u64::from(edge));
    // Lengths below 128 are one byte: written after the value is known, in the place kept for it.
    let length_at = out.len();
    out.push(0);
    message.value.encode(out);
    let length = out.len() - length_at - 1;
    if length < 0x80 {
        out[length_at] = u8::try_from(length).expect("below 128");
    } else {
        let mut long = Vec::with_capacity(10);
        number(&mut long, length as u64);
        out.splice(length_at..=length_at, long);
    }
}

fn number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(u8::try_from(n & 0x7f).expect("seven bits") | 0x80);
        n >>= 7;
    }
    out.push(u8::try_from(n).expect("below 128"));
}
