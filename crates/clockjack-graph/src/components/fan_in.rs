//! Components with several inputs: join, merge, select.

use clockjack_exec::Failure;

use crate::{
    Component,
    component::{Execute, Input, Output},
    run::GraphContext,
};

/// `join`: the sum of the latest values of its inputs, once `a` and `b` have a value. The inputs
/// `c` to `h` are optional, and count as soon as they have a value.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "join", title = "Sum")]
pub(super) struct Join {
    /// The first summand.
    #[input]
    a: Input<f64>,
    /// The second summand.
    #[input]
    b: Input<f64>,
    /// Another summand, if it is connected.
    #[input(optional)]
    c: Input<f64>,
    /// Another summand, if it is connected.
    #[input(optional)]
    d: Input<f64>,
    /// Another summand, if it is connected.
    #[input(optional)]
    e: Input<f64>,
    /// Another summand, if it is connected.
    #[input(optional)]
    f: Input<f64>,
    /// Another summand, if it is connected.
    #[input(optional)]
    g: Input<f64>,
    /// Another summand, if it is connected.
    #[input(optional)]
    h: Input<f64>,
    /// The sum.
    #[output]
    out: Output<f64>,
}

impl Execute for Join {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let (Some(a), Some(b)) = (cx.latest(self.a), cx.latest(self.b)) else { return Ok(()) };
        let mut sum = a + b;
        for more in [self.c, self.d, self.e, self.f, self.g, self.h] {
            sum += cx.latest(more).unwrap_or(&0.0);
        }
        Ok(cx.publish(self.out, sum)?)
    }
}

/// `merge`: publishes each value of each of its edges.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "merge", title = "Merge")]
pub(super) struct Merge {
    /// The values. Any number of edges may end here.
    #[input(multiple)]
    r#in: Input<f64>,
    /// The same values.
    #[output]
    out: Output<f64>,
}

impl Execute for Merge {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.r#in) {
            cx.publish(self.out, value)?;
        }
        Ok(())
    }
}

/// `select`: the latest value of one of its inputs, which the latest `index` chooses: 0 for `a`, 1
/// for `b` and so on. It publishes nothing while there is no such input, or no value there.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "select", title = "Selection")]
pub(super) struct Select {
    /// The number of the input.
    #[input]
    index: Input<f64>,
    /// Input 0.
    #[input]
    a: Input<f64>,
    /// Input 1.
    #[input]
    b: Input<f64>,
    /// Input 2, if it is connected.
    #[input(optional)]
    c: Input<f64>,
    /// Input 3, if it is connected.
    #[input(optional)]
    d: Input<f64>,
    /// Input 4, if it is connected.
    #[input(optional)]
    e: Input<f64>,
    /// Input 5, if it is connected.
    #[input(optional)]
    f: Input<f64>,
    /// Input 6, if it is connected.
    #[input(optional)]
    g: Input<f64>,
    /// Input 7, if it is connected.
    #[input(optional)]
    h: Input<f64>,
    /// The value of the chosen input.
    #[output]
    out: Output<f64>,
}

impl Execute for Select {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let Some(index) = cx.latest(self.index).copied() else { return Ok(()) };
        let all = [self.a, self.b, self.c, self.d, self.e, self.f, self.g, self.h];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let chosen = all.get(index as usize).filter(|_| index >= 0.0);
        match chosen.and_then(|input| cx.latest(*input)).copied() {
            Some(value) => Ok(cx.publish(self.out, value)?),
            None => Ok(()),
        }
    }
}
