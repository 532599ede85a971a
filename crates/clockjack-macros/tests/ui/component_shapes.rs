//! Types that are not structs with named fields, or that borrow.

use clockjack_macros::Component;

#[derive(Component)]
#[component(type = "a")]
struct Tuple(Input<f64>, Output<f64>);

#[derive(Component)]
#[component(type = "b")]
enum Either {
    This,
    That,
}

#[derive(Component)]
#[component(type = "c")]
union Both {
    a: u32,
    b: f32,
}

#[derive(Component)]
#[component(type = "d")]
struct Borrows<'a> {
    text: &'a str,
}

struct Input<T>(T);
struct Output<T>(T);

fn main() {}
