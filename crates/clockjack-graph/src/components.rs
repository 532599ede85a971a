//! Standard components for files without code: building blocks of first graphs, tests and
//! demonstrations. There is no scripting; other components are written in Rust.
//!
//! They are deterministic: they use no clock except that of the run, noise comes from a seed, and
//! arithmetic uses only `+ - * /`, whose results are identical on every machine.
//!
//! * Inputs: `input`, `binary_input`, `frame_input`.
//! * Sources: `constant`, `counter`, `source`, `noise`.
//! * Processing: `identity`, `validator`, `delay`, `async_worker`.
//! * Several inputs: `join`, `merge`, `select`.
//! * Control: `sensor`, `estimator`, `controller`, `actuator`.
//! * Measurement: `rate_probe`.
//! * Outputs: `output`, `binary_output`, `frame_output`.
//!
//! The book describes their ports and settings.
//!
//! Values are `f64` unless the type says otherwise. If there is only one input, it is called `in`;
//! if there is only one output, it is called `out`.

mod boundary;
mod buffers;
mod control;
mod fan_in;
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
        .register::<fan_in::Join>()
        .register::<fan_in::Merge>()
        .register::<fan_in::Select>()
        .register::<plain::AsyncWorker>()
        .register::<plain::Delay>()
        .register_shared::<plain::Identity>()
        .register::<plain::RateProbe>()
        .register::<plain::Validator>()
        .register::<sources::Constant>()
        .register::<sources::Counter>()
        .register::<sources::Noise>()
        .register::<sources::Source>()
}
