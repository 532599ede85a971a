//! Hello by a closure, and by `#[actor]`; by hand it is `examples/hello.rs`.

use std::sync::mpsc;

use clockjack::prelude::*;

const LONG: Duration = Duration::from_secs(10);

#[test]
fn a_closure_is_an_actor() -> Result<(), Box<dyn core::error::Error>> {
    let rt = Runtime::new("hello")?;
    let (told, heard) = mpsc::channel();
    let greeter = Props::from_fn(move |_cx, name: String| {
        told.send(format!("hello, {name}"))?;
        Ok(Next::Stay)
    });
    rt.spawn("greeter", greeter)?.tell("world".into())?;
    assert_eq!(heard.recv()?, "hello, world");
    Ok(())
}

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    #[msg]
    fn inc(&mut self, by: u32) {
        self.n += u64::from(by);
    }

    #[msg]
    async fn double(&mut self) -> Result<(), Failure> {
        self.n *= 2;
        Ok(())
    }

    #[ask]
    fn get(&self, _cx: &mut Context<'_, Self>) -> u64 {
        self.n
    }
}

#[test]
fn methods_are_messages_for_who_knows_the_facade_alone() -> Result<(), Failure> {
    let rt = Runtime::new("counting")?;
    let counter = rt.spawn("counter", Counter::default)?;
    counter.inc(20)?;
    counter.tell(CounterMsg::Inc { by: 1 })?;
    counter.double()?;
    assert_eq!(rt.block_on(counter.get(LONG))?, 42);
    Ok(())
}
