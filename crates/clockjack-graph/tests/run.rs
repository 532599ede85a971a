//! Running graphs: what becomes visible when, and that threads do not change it.

extern crate alloc;

#[path = "run/parts.rs"]
mod parts;

#[path = "run/basics.rs"]
mod basics;

#[path = "run/clock.rs"]
mod clock;

#[path = "run/teller.rs"]
mod teller;

#[path = "run/laws.rs"]
mod laws;

#[path = "run/settings.rs"]
mod settings;

#[path = "run/together.rs"]
mod together;

#[path = "run/lanes.rs"]
mod lanes;

#[path = "run/threads.rs"]
mod threads;

#[path = "run/linux.rs"]
mod linux;

#[path = "run/fields.rs"]
mod fields;
