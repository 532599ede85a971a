//! Messages that cannot move to another thread for other reasons than `Rc`: the error is at the
//! field.

use clockjack_macros::actor;

use std::{cell::RefCell, marker::PhantomData, rc, sync::MutexGuard};

struct Log<T>(T);

#[actor]
impl<T: 'static> Log<T> {
    #[msg]
    fn raw(&mut self, _from: *const u8) {}

    #[msg]
    fn shared(&mut self, _level: u8, _text: Option<&'static RefCell<String>>) {}

    #[msg]
    fn weak(&mut self, _to: rc::Weak<str>) {}

    #[msg]
    fn call(&mut self, _f: Box<dyn FnOnce(u8) -> bool>) {}

    #[msg]
    fn marked(&mut self, _marker: PhantomData<*mut u8>) {}

    #[msg]
    fn fine(&mut self, _f: Box<dyn FnOnce(u8) -> bool + Send>, _t: T, _ts: Vec<T>) {}

    #[ask]
    fn locked(&self) -> MutexGuard<'static, u8> {
        unreachable!()
    }

    #[ask]
    fn boxed(&self) -> Result<Box<dyn Fn()>, ()> {
        Err(())
    }
}

fn main() {}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/actor.rs"]
mod stub;
pub use stub::*;
