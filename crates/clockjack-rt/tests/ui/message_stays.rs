//! An actor without the macro, whose message cannot move to another thread: the error names the
//! type that cannot, and the enum.

use std::rc::Rc;

use clockjack_rt::{
    Runtime,
    actor::{Actor, Context, Failure, Next},
};

enum Msg {
    Line(Rc<str>),
}

struct Printer;

impl Actor for Printer {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let Msg::Line(line) = msg;
        println!("{line}");
        Ok(Next::Stay)
    }
}

fn spawn(rt: &Runtime) {
    drop(rt.spawn("printer", || Printer));
}

fn main() {}
