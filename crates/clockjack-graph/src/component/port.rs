//! Ports: a component type has named ports, and a component holds a key per port.

use core::{fmt, marker::PhantomData};

use super::descriptor::Descriptor;
use crate::data::Data;

/// An input of a component type.
pub struct InputPort<T> {
    name: &'static str,
    carries: PhantomData<fn() -> T>,
}

/// An output of a component type.
pub struct OutputPort<T> {
    name: &'static str,
    carries: PhantomData<fn() -> T>,
}

/// The key of an input. A component passes it to [`GraphContext`](crate::run::GraphContext) to read
/// values.
pub struct Input<T> {
    index: u32,
    carries: PhantomData<fn() -> T>,
}

/// The key of an output.
pub struct Output<T> {
    index: u32,
    carries: PhantomData<fn() -> T>,
}

/// The index of a port that was never bound.
const UNBOUND: u32 = u32::MAX;

macro_rules! ports {
    ($port:ident, $key:ident) => {
        impl<T: Data> $port<T> {
            /// The port with this name.
            #[must_use]
            pub const fn new(name: &'static str) -> Self {
                Self { name, carries: PhantomData }
            }

            /// The name of the port.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                self.name
            }
        }

        impl<T> Clone for $port<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $port<T> {}

        impl<T> fmt::Debug for $port<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($port), "({})"), self.name)
            }
        }

        impl<T> $key<T> {
            /// The index of the port in the component; `None` before it is bound.
            pub(crate) const fn index(self) -> Option<usize> {
                if self.index == UNBOUND { None } else { Some(self.index as usize) }
            }

            /// Like [`index`](Self::index), but only below a limit. An unbound key is never below
            /// it.
            #[inline]
            pub(crate) const fn below(self, limit: u16) -> Option<u16> {
                #[expect(clippy::cast_possible_truncation, reason = "it is below the limit")]
                if self.index < limit as u32 { Some(self.index as u16) } else { None }
            }

            pub(crate) const fn at(index: u32) -> Self {
                Self { index, carries: PhantomData }
            }
        }

        impl<T> Clone for $key<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $key<T> {}

        /// An unbound key: the value before the component is bound.
        impl<T> Default for $key<T> {
            fn default() -> Self {
                Self::at(UNBOUND)
            }
        }

        impl<T> fmt::Debug for $key<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.index() {
                    Some(index) => write!(f, concat!(stringify!($key), "({})"), index),
                    None => f.write_str(concat!(stringify!($key), "(unbound)")),
                }
            }
        }
    };
}

ports!(InputPort, Input);
ports!(OutputPort, Output);

const _: () = assert!(size_of::<Input<f64>>() == 4 && size_of::<Output<f64>>() == 4);

/// Provides a component with the keys of its ports.
#[derive(Debug)]
pub struct Binder<'a> {
    descriptor: &'a Descriptor,
    unknown: Option<&'static str>,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(descriptor: &'a Descriptor) -> Self {
        Self { descriptor, unknown: None }
    }

    /// The key of an input. A port that the descriptor does not contain is a bug in the component;
    /// the graph is then refused.
    pub fn input<T: Data>(&mut self, port: InputPort<T>) -> Input<T> {
        match self.descriptor.inputs.iter().position(|one| one.name == port.name) {
            Some(index) => Input::at(u32::try_from(index).expect("ports are few")),
            None => {
                self.unknown.get_or_insert(port.name);
                Input::default()
            }
        }
    }

    /// The key of an output. A port that the descriptor does not contain is a bug in the component;
    /// the graph is then refused.
    pub fn output<T: Data>(&mut self, port: OutputPort<T>) -> Output<T> {
        match self.descriptor.outputs.iter().position(|one| one.name == port.name) {
            Some(index) => Output::at(u32::try_from(index).expect("ports are few")),
            None => {
                self.unknown.get_or_insert(port.name);
                Output::default()
            }
        }
    }

    /// The first requested port that the descriptor does not contain.
    pub(crate) fn unknown(&self) -> Option<&'static str> {
        self.unknown
    }
}
