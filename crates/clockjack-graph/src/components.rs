//! Components for files without code: what a first graph, a test or a demonstration is made of.
//! There is no scripting; who needs another one writes it in Rust.
//!
//! They are as repeatable as the graph: none looks at a clock other than the run's, noise comes
//! from a seed, and arithmetic is `+ - * /`, whose bits are the same on every machine.
//!
//! * Values come in: [`input`](boundary::FeedInput), [`binary_input`](buffers::BinaryInput),
//!   [`frame_input`](buffers::FrameInput).
//! * Values are made: [`constant`](sources::Constant), [`counter`](sources::Counter),
//!   [`source`](sources::Source), [`noise`](sources::Noise).
//! * Values pass: [`identity`](plain::Identity), [`join`](plain::Join),
//!   [`validator`](plain::Validator), [`delay`](plain::Delay),
//!   [`async_worker`](plain::AsyncWorker).
//! * A control loop: [`sensor`](control::Sensor), [`estimator`](control::Estimator),
//!   [`controller`](control::Controller), [`actuator`](control::Actuator).
//! * Values are measured: [`rate_probe`](plain::RateProbe).
//! * Values go out: [`output`](boundary::CountOutput), [`binary_output`](buffers::BinaryOutput),
//!   [`frame_output`](buffers::FrameOutput).
//!
//! A value is an `f64`, unless the type says else. The input is called `in` and the output `out`
//! where there is one.

pub mod boundary;
pub mod buffers;
pub mod control;
pub mod plain;
pub mod sources;
mod state;
#[cfg(test)]
mod tests;

use crate::registry::Registry;

/// Adds all of them.
pub(crate) fn register_all(registry: Registry) -> Registry {
    registry
        .register::<boundary::FeedInput>()
        .register::<boundary::CountOutput>()
        .register::<buffers::BinaryInput>()
        .register::<buffers::BinaryOutput>()
        .register::<buffers::FrameInput>()
        .register::<buffers::FrameOutput>()
        .register::<control::Actuator>()
        .register::<control::Controller>()
        .register::<control::Estimator>()
        .register::<control::Sensor>()
        .register::<plain::AsyncWorker>()
        .register::<plain::Delay>()
        .register_shared::<plain::Identity>()
        .register::<plain::Join>()
        .register::<plain::RateProbe>()
        .register::<plain::Validator>()
        .register::<sources::Constant>()
        .register::<sources::Counter>()
        .register::<sources::Noise>()
        .register::<sources::Source>()
}
