//! Options of a component that are missing, do not exist, come twice or have the wrong value.

use clockjack_macros::Component;

#[derive(Component)]
struct Bare;

#[derive(Component)]
#[component(title = "No type")]
struct NoType;

#[derive(Component)]
#[component(name = "gain")]
struct Unknown;

#[derive(Component)]
#[component(type = gain)]
struct NotAText;

#[derive(Component)]
#[component(type = "my gain")]
struct Spaced;

#[derive(Component)]
#[component = "gain"]
struct Equals;

#[derive(Component)]
#[component(type = "a", type = "b")]
struct KeyTwice;

#[derive(Component)]
#[component(type = "a")]
#[component(title = "A")]
struct AttributeTwice;

#[derive(Component)]
#[component(type = "a", role = "middle")]
struct Role;

#[derive(Component)]
#[component(type = "a", crate = "clockjack")]
struct Crate;

fn main() {}
