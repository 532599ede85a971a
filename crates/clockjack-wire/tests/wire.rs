//! The wire format: values, messages and frames.

#[path = "wire/frames.rs"]
mod frames;
#[path = "wire/golden.rs"]
mod golden;
#[path = "wire/hostile.rs"]
mod hostile;
#[path = "wire/round_trip.rs"]
mod round_trip;
#[path = "wire/types.rs"]
mod types;
#[path = "wire/versions.rs"]
mod versions;
