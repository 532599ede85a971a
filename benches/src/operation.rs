//! A measured operation: a name, a batch size, and a setup that returns the batch.

/// One batch: runs the operation the given number of times.
pub(crate) type Batch = Box<dyn FnMut(u32)>;

/// A hot operation.
pub(crate) struct Operation {
    /// `crate/part/verb`.
    pub(crate) name: &'static str,
    /// Iterations in a batch.
    pub(crate) n: u32,
    /// Creates the state of the batches, with room for two of them.
    pub(crate) setup: Box<dyn Fn() -> Batch>,
}

/// An operation: `setup` is not measured, the batch that it returns is.
///
/// A batch is called through a pointer, so that it is compiled once and separately from the
/// harness. Values that the operation returns go through `core::hint::black_box`.
pub(crate) fn operation<R: FnMut(u32) + 'static>(
    name: &'static str,
    n: u32,
    setup: impl Fn() -> R + 'static,
) -> Operation {
    Operation { name, n, setup: Box::new(move || Box::new(setup())) }
}
