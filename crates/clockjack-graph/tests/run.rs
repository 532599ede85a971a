//! Running graphs: what becomes visible when, and that threads do not change it.

#[path = "run/parts.rs"]
mod parts;

#[path = "run/acts.rs"]
mod acts;

#[path = "run/basics.rs"]
mod basics;

#[path = "run/parallel.rs"]
mod parallel;

#[path = "run/bridge.rs"]
mod bridge;

#[path = "run/clock.rs"]
mod clock;

#[path = "run/feeds.rs"]
mod feeds;

#[path = "run/hints.rs"]
mod hints;

#[path = "run/jacobi.rs"]
mod jacobi;

#[path = "run/loop_types.rs"]
mod loop_types;

#[path = "run/observers.rs"]
mod observers;

#[path = "run/payloads.rs"]
mod payloads;

#[path = "run/restarts.rs"]
mod restarts;

#[path = "run/tasks.rs"]
mod tasks;

#[path = "run/teller.rs"]
mod teller;

#[path = "run/invariants.rs"]
mod invariants;

#[path = "run/settings.rs"]
mod settings;

#[path = "run/together.rs"]
mod together;

#[path = "run/step_kinds.rs"]
mod step_kinds;

#[path = "run/lanes.rs"]
mod lanes;

#[path = "run/threads.rs"]
mod threads;

#[path = "run/slow_lane.rs"]
mod slow_lane;

#[path = "run/harm.rs"]
mod harm;

#[path = "run/room.rs"]
mod room;

#[path = "run/linux.rs"]
mod linux;

#[path = "run/overdue.rs"]
mod overdue;

#[path = "run/fields.rs"]
mod fields;

#[path = "run/chains.rs"]
mod chains;
