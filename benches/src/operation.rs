//! What is measured: a name, a batch size, and a setup that returns the batch.

/// One batch: runs the operation as many times as it is told.
pub(crate) type Batch = Box<dyn FnMut(u32)>;

/// A hot operation.
pub(crate) struct Operation {
    /// `crate/part/verb`.
    pub(crate) name: &'static str,
    /// Iterations in a batch.
    pub(crate) n: u32,
    /// Builds what the batches need, with room for two of them.
    pub(crate) setup: Box<dyn Fn() -> Batch>,
}

/// An operation: `setup` is not measured, what it returns is.
///
/// A batch is called through a pointer, so that it is compiled once and apart from the harness.
/// Values that the operation yields go through `core::hint::black_box`.
pub(crate) fn operation<R: FnMut(u32) + 'static>(
    name: &'static str,
    n: u32,
    setup: impl Fn() -> R + 'static,
) -> Operation {
    Operation { name, n, setup: Box::new(move || Box::new(setup())) }
}
