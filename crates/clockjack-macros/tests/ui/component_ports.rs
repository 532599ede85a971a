//! Ports of other types, without a mark, or with too many.

use clockjack_macros::Component;

#[derive(Component)]
#[component(type = "gain")]
struct Gain {
    #[input]
    number: f64,
    #[input]
    wrong_way: Output<f64>,
    #[output]
    text: String,
    unmarked: Input<f64>,
    unmarked_too: Output<f64>,
    #[input]
    #[output]
    both: Input<f64>,
    #[input]
    #[input]
    twice: Input<f64>,
    #[input(maybe)]
    unknown: Input<f64>,
    #[input(optional, optional)]
    again: Input<f64>,
    #[output(optional)]
    option: Output<f64>,
    #[input = "in"]
    equals: Input<f64>,
}

struct Input<T>(T);
struct Output<T>(T);

fn main() {}
