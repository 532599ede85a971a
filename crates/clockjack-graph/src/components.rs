//! Standard components for files without code: building blocks of first graphs, tests and
//! demonstrations. There is no scripting; other components are written in Rust.
//!
//! They are deterministic: they use no clock except that of the run, noise comes from a seed, and
//! arithmetic uses only `+ - * /`, whose results are identical on every machine.
//!
//! * Inputs: [`input`](boundary::FeedInput), [`binary_input`](buffers::BinaryInput),
//!   [`frame_input`](buffers::FrameInput).
//! * Sources: [`constant`](sources::Constant), [`counter`](sources::Counter),
//!   [`source`](sources::Source), [`noise`](sources::Noise).
//! * Processing: [`identity`](plain::Identity), [`join`](plain::Join),
//!   [`validator`](plain::Validator), [`delay`](plain::Delay),
//!   [`async_worker`](plain::AsyncWorker).
//! * Control: [`sensor`](control::Sensor), [`estimator`](control::Estimator),
//!   [`controller`](control::Controller), [`actuator`](control::Actuator).
//! * Measurement: [`rate_probe`](plain::RateProbe).
//! * Outputs: [`output`](boundary::CountOutput), [`binary_output`](buffers::BinaryOutput),
//!   [`frame_output`](buffers::FrameOutput).
//!
//! Values are `f64` unless the type says otherwise. If there is only one input, it is called `in`;
//! if there is only one output, it is called `out`.

mod boundary;
mod buffers;
mod control;
mod plain;
mod sources;
mod state;
#[cfg(test)]
mod tests;

use crate::registry::Registry;

/// Registers all standard components.
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
