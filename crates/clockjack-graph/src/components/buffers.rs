//! Where bytes and pictures enter and leave a graph: made up, of a size that is set, from a pool.
//!
//! What the `n`-th one contains depends on `n` alone. The pool makes none of this cheaper to
//! compare, but a graph of large payloads allocates nothing once it is warm.

use clockjack_exec::Failure;

use super::state::keeps;
use crate::{
    Component,
    component::{Execute, Input, Output},
    data::{Blob, BufferPool, Frame, PixelFormat, PoolError},
    run::GraphContext,
};

/// Of a picture's rows each begins at a multiple of this.
const ROW_ALIGN: usize = 64;

/// A pool of blocks of one size, which is made anew when the size changes.
#[derive(Debug, Default)]
struct Blocks {
    pool: Option<BufferPool>,
    made_for: (usize, usize),
}

impl Blocks {
    fn pool(&mut self, bytes: usize, n: usize) -> &BufferPool {
        if self.made_for != (bytes, n) {
            self.pool = None;
            self.made_for = (bytes, n);
        }
        self.pool.get_or_insert_with(|| {
            let each = bytes.saturating_add(ROW_ALIGN - 1);
            BufferPool::aligned(&[bytes], each.saturating_mul(n), ROW_ALIGN)
        })
    }
}

/// `binary_input`: a blob of `size` bytes each time; the `i`-th byte of the `n`-th blob is `i + n`,
/// from zero and modulo 256. It fails while all its `buffers` are still in use.
#[derive(Component, Debug, Default)]
#[component(type = "binary_input", title = "Binary input", role = "input")]
pub struct BinaryInput {
    /// The bytes.
    #[output]
    out: Output<Blob>,
    #[config(default = 1024, min = 0, max = 1073741824)]
    size: usize,
    #[config(default = 16, min = 1, max = 65536)]
    buffers: usize,
    blocks: Blocks,
    n: u64,
}

impl BinaryInput {
    pub(super) fn next(&mut self) -> Result<Blob, PoolError> {
        let mut loan = self.blocks.pool(self.size, self.buffers).loan(self.size)?;
        fill(&mut loan, low_byte(self.n));
        self.n += 1;
        Ok(loan.freeze())
    }
}

impl Execute for BinaryInput {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let blob = self.next()?;
        cx.publish(self.out, blob)?;
        Ok(())
    }

    keeps!(n);
}

/// `frame_input`: a picture each time; the `i`-th byte of row `y` of the `n`-th one is `i + y + n`,
/// from zero and modulo 256. It fails while all its `buffers` are still in use.
#[derive(Component, Debug, Default)]
#[component(type = "frame_input", title = "Frame input", role = "input")]
pub struct FrameInput {
    /// The pictures.
    #[output]
    out: Output<Frame>,
    #[config(default = 64, min = 1, max = 16384)]
    width: u32,
    #[config(default = 48, min = 1, max = 16384)]
    height: u32,
    #[config(default = "rgb8", one_of("gray8", "gray16", "rgb8", "bgr8", "rgba8"))]
    format: String,
    #[config(default = 8, min = 1, max = 65536)]
    buffers: usize,
    blocks: Blocks,
    n: u64,
}

impl FrameInput {
    pub(super) fn next(&mut self) -> Result<Frame, Failure> {
        let format = PixelFormat::from_name(&self.format).unwrap_or(PixelFormat::Rgb8);
        let row = usize::try_from(self.width)? * format.bytes_per_pixel();
        let stride = row.next_multiple_of(ROW_ALIGN);
        let bytes = stride * usize::try_from(self.height)?;
        let mut loan = self.blocks.pool(bytes, self.buffers).loan(bytes)?;
        for (y, line) in (0_u64..).zip(loan.chunks_exact_mut(stride)) {
            fill(&mut line[..row], low_byte(self.n.wrapping_add(y)));
        }
        self.n += 1;
        let size = (self.width, self.height);
        Ok(Frame::new(&loan.freeze(), size, u32::try_from(stride)?, format)?)
    }
}

impl Execute for FrameInput {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let frame = self.next()?;
        cx.publish(self.out, frame)?;
        Ok(())
    }

    keeps!(n);
}

/// `binary_output`: takes blobs out of the graph and counts them and their bytes, both of which are
/// in its snapshot. It keeps none, so their buffers are free again.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "binary_output", title = "Binary output", role = "output")]
pub struct BinaryOutput {
    /// What leaves the graph. Any number of edges may end here.
    #[input(multiple)]
    r#in: Input<Blob>,
    count: u64,
    bytes: u64,
}

impl Execute for BinaryOutput {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        for blob in cx.drain(self.r#in) {
            self.count += 1;
            self.bytes += blob.len() as u64;
        }
        Ok(())
    }

    keeps!(count, bytes);
}

/// `frame_output`: takes pictures out of the graph and counts them and their bytes, both of which
/// are in its snapshot. It keeps none, so their buffers are free again.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "frame_output", title = "Frame output", role = "output")]
pub struct FrameOutput {
    /// What leaves the graph. Any number of edges may end here.
    #[input(multiple)]
    r#in: Input<Frame>,
    count: u64,
    bytes: u64,
}

impl Execute for FrameOutput {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        for frame in cx.drain(self.r#in) {
            self.count += 1;
            self.bytes += frame.pixels().len() as u64;
        }
        Ok(())
    }

    keeps!(count, bytes);
}

/// `first`, `first + 1`, .. modulo 256.
fn fill(bytes: &mut [u8], first: u8) {
    let mut next = first;
    for byte in bytes {
        *byte = next;
        next = next.wrapping_add(1);
    }
}

fn low_byte(n: u64) -> u8 {
    n.to_le_bytes()[0]
}
