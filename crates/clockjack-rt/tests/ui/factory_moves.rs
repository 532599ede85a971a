//! A factory makes the actor again for a restart, so it cannot move a captured value into it.

use clockjack_rt::{
    Runtime,
    actor::{Actor, ActorSystem, Context, Failure, Next, Props},
};

struct Greeter {
    greeting: String,
}

impl Actor for Greeter {
    type Msg = String;

    fn receive(&mut self, _: &mut Context<'_, Self>, name: String) -> Result<Next, Failure> {
        println!("{}, {name}", self.greeting);
        Ok(Next::Stay)
    }
}

fn with_a_closure(rt: &Runtime, greeting: String) {
    drop(rt.spawn("greeter", move || Greeter { greeting }));
}

fn with_props(system: &ActorSystem, greeting: String) {
    drop(system.spawn("greeter", Props::new(move || Greeter { greeting })));
}

fn right(rt: &Runtime, greeting: String) {
    drop(rt.spawn("one", Props::once(Greeter { greeting: greeting.clone() })));
    drop(rt.spawn("two", move || Greeter { greeting: greeting.clone() }));
}

fn main() {}
