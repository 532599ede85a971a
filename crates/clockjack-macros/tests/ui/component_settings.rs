//! Settings that contradict themselves, or have options that do not exist.

use clockjack_macros::Component;

#[derive(Component)]
#[component(type = "gain")]
struct Gain {
    #[config(defualt = 1.0)]
    unknown: f64,
    #[config(default =)]
    no_value: f64,
    #[config(min)]
    no_number: f64,
    #[config(min = "0")]
    text_as_bound: f64,
    #[config(min = 2.0, max = 1.0)]
    nothing_between: f64,
    #[config(default = 11, min = 1, max = 10)]
    default_outside: u32,
    #[config(default = "sinus", one_of("sine", "saw"))]
    default_not_listed: String,
    #[config(one_of())]
    no_choice: String,
    #[config(one_of("a", "b"))]
    number_as_text: f64,
    #[config(max = 3)]
    text_as_number: String,
    #[config(default = 1.0)]
    optional: Option<f64>,
    #[config]
    port: Input<f64>,
    #[config(min = 1, min = 2)]
    twice: u32,
}

struct Input<T>(T);

fn main() {}
