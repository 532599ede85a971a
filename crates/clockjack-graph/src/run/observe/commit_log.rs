//! The commit log: every message that was committed to a channel, in compiled order; values from
//! outside in the order of their arrival. Writes to the blackboard have no entries: they follow
//! from the messages. Equal runs have equal logs, byte for byte. The head of `epoch.rs` explains
//! how an epoch commits.
//!
//! Each epoch domain has its own log. The log contains everything that the results of the domain
//! depend on, besides the graph and the seed: the times of its epochs, and what came from outside
//! and from other domains, in the order of arrival, including changes of settings.
//!
//! ```text
//! "CJCL" 1  name-length name
//! 'L' length lane            the log of a lane with its own clock; otherwise of all other lanes
//! 'E' epoch time-ns          an epoch begins
//! 'C' edge length bytes      a value was committed: an immediate one in its epoch, any other at
//!                            the beginning of the epoch in which it is visible
//! 'I' edge length bytes      a value came from outside
//! 'A' edge length bytes      a value came from another domain
//! 'R' edge                   the value of the entry before, in the same way on another edge
//! 'S' n (component m (length name setting)*)*
//!                            an accepted change of settings: n components get m settings each
//! 'B' component iterations   the loop with this first member was ended by the clock
//! 'X' component              a component failed and ended the run
//! ```
//! A value of 64 bytes or more that an output publishes on several edges is written once, followed
//! by an `R` for each further edge of the same kind. Numbers are LEB128: seven bits per byte, the
//! low ones first. A setting is its kind and its value:
//!
//! ```text
//! 'n'                        nothing
//! 'b' number                 0 or 1
//! 'i' eight bytes            a whole number, the low byte first
//! 'f' eight bytes            any other number, its bits, the low byte first
//! 't' length bytes           a text
//! 'j' length bytes           a list or a map, as JSON
//! ```
//! A refused change leaves no entry. A change at which a component fails is followed by an `X`.

use crate::{
    data::fields::{put_number as number, put_with_length},
    describe::{ConfigMap, ConfigValue},
    run::flow::message::Message,
};

/// The first bytes of a log.
pub const MAGIC: &[u8; 5] = b"CJCL\x01";

pub(crate) fn head(out: &mut Vec<u8>, name: &str, lane: Option<&str>) {
    out.extend_from_slice(MAGIC);
    text(out, name);
    if let Some(lane) = lane {
        out.push(b'L');
        text(out, lane);
    }
}

pub(crate) fn epoch(out: &mut Vec<u8>, epoch: u64, now_ns: u64) {
    out.push(b'E');
    number(out, epoch);
    number(out, now_ns);
}

/// Shorter values are written for each edge.
const REPEATED_MIN: usize = 64;

/// Writes a commit; returns whether further edges may [repeat](again) it.
pub(crate) fn commit(out: &mut Vec<u8>, edge: u32, message: &Message) -> bool {
    value(out, b'C', edge, message)
}

/// Writes a value from outside; returns whether further edges may [repeat](again) it.
pub(crate) fn input(out: &mut Vec<u8>, edge: u32, message: &Message) -> bool {
    value(out, b'I', edge, message)
}

/// The entry before, on another edge.
pub(crate) fn again(out: &mut Vec<u8>, edge: u32) {
    out.push(b'R');
    number(out, u64::from(edge));
}

pub(crate) fn arrival(out: &mut Vec<u8>, edge: u32, message: &Message) {
    value(out, b'A', edge, message);
}

pub(crate) fn settings(out: &mut Vec<u8>, changes: &[(usize, ConfigMap)]) {
    out.push(b'S');
    number(out, changes.len() as u64);
    for (component, change) in changes {
        number(out, *component as u64);
        number(out, change.entries.len() as u64);
        for (name, value, _) in &change.entries {
            text(out, name);
            setting(out, value);
        }
    }
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

fn value(out: &mut Vec<u8>, tag: u8, edge: u32, message: &Message) -> bool {
    out.push(tag);
    number(out, u64::from(edge));
    put_with_length(out, |out| message.value.encode(out)) >= REPEATED_MIN
}

fn setting(out: &mut Vec<u8>, value: &ConfigValue) {
    match value {
        ConfigValue::Null => out.push(b'n'),
        ConfigValue::Bool(is_so) => out.extend([b'b', u8::from(*is_so)]),
        ConfigValue::Int(n) => {
            out.push(b'i');
            out.extend(n.to_le_bytes());
        }
        ConfigValue::Float(x) => {
            out.push(b'f');
            out.extend(x.to_bits().to_le_bytes());
        }
        ConfigValue::Text(value) => {
            out.push(b't');
            text(out, value);
        }
        ConfigValue::Nested(json) => {
            out.push(b'j');
            text(out, json);
        }
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
