//! Names in the surrounding code: generated code needs none of them, and none disturbs it.

#![no_implicit_prelude]

use ::core::{
    assert, assert_eq,
    option::Option::{None, Some},
};

/// Items with names that generated code must not resolve to.
mod decoys {
    #![expect(dead_code, reason = "they are there to be met, not to be used")]

    pub(super) struct Result;
    pub(super) struct Box;
    pub(super) struct Duration;
    pub(super) struct ActorRef;
    pub(super) struct Context;
    pub(super) trait Actor {}
    pub(super) trait IntoNext {}
}
#[expect(unused_imports, reason = "they are there to be met, not to be used")]
use decoys::{Actor, ActorRef, Box, Context, Duration, IntoNext, Result};

struct Odd {
    sum: u32,
    seen: &'static str,
}

#[::clockjack_macros::actor(crate = crate::stub)]
impl Odd {
    // Parameters with the names of variables in the generated code.
    #[ask]
    fn all(&mut self, cx: u32, msg: u32, timeout: u32, answer: u32, answer_to: u32) -> u32 {
        self.sum += cx + msg + timeout + answer + answer_to;
        self.sum
    }

    #[ask]
    async fn wait(&mut self, me: u32, cx: u32) -> u32 {
        self.sum + me + cx
    }

    // Keywords, as names of a method and of a parameter.
    #[msg]
    fn r#type(&mut self, r#move: u32) {
        self.sum = r#move;
    }

    // Methods with the names of methods of `Actor`, whose receiver would match better.
    #[msg]
    fn receive(&self, by: u32) -> crate::stub::Next {
        if by == self.sum { crate::stub::Next::Stop } else { crate::stub::Next::Stay }
    }

    #[started]
    fn signal(&mut self) {
        self.seen = "started";
    }

    #[signal]
    fn started(&mut self, _: &mut crate::stub::Context<'_, Self>, _: crate::stub::Signal) {
        self.seen = "signal";
    }

    // `cfg` attributes of a method apply to its message too.
    #[cfg(any())]
    #[msg]
    fn absent(&mut self, nothing: NoSuchType) {}

    #[cfg(not(any()))]
    #[msg]
    fn present(&mut self) {
        self.sum = 1;
    }

    #[cfg(any())]
    #[msg]
    fn present(&mut self, twin: u32) {}

    #[cfg(any())]
    #[started]
    fn never_started(&mut self) {}
}

fn stage() -> crate::stub::Stage<Odd> {
    crate::stub::Stage::new(Odd { sum: 0, seen: "" })
}

#[test]
fn parameters_may_have_the_names_of_generated_variables() {
    let mut stage = stage();
    let second = ::core::time::Duration::from_secs(1);
    let all = stage.target.all(1, 2, 3, 4, 5, second);
    let wait = stage.target.wait(10, 20, second);
    stage.run();
    assert_eq!(all.answer(), Some(15));
    assert_eq!(wait.answer(), Some(45));
}

#[test]
fn raw_identifiers_are_kept_where_they_are_needed() {
    let mut stage = stage();
    assert!(stage.target.r#type(3).is_ok());
    assert!(stage.target.tell(OddMsg::Type { r#move: 4 }).is_ok());
    stage.run();
    assert_eq!(stage.actor.sum, 4);
}

#[test]
fn methods_may_have_the_names_of_those_of_the_trait() {
    let mut stage = stage();
    assert!(stage.target.receive(0).is_ok());
    assert_eq!(stage.handle(), Some(::core::result::Result::Ok(crate::stub::Next::Stop)));
    assert!(stage.start().is_ok());
    assert_eq!(stage.actor.seen, "started");
    assert!(stage.signal(crate::stub::Signal::PostStop).is_ok());
    assert_eq!(stage.actor.seen, "signal");
}

#[test]
fn a_method_that_is_not_there_has_no_message() {
    let mut stage = stage();
    assert!(stage.target.present().is_ok());
    stage.run();
    assert_eq!(stage.actor.sum, 1);
    assert_eq!(stage.handle(), None);
}
