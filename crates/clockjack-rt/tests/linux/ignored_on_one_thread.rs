//! An ignored signal and a listener on the one thread of a program.

use crate::{
    child::{Process, SIGINT, SIGTERM},
    signals_on_one_thread::TEST,
};

#[test]
fn an_ignored_interrupt_stays_ignored_with_a_warning_and_the_other_signal_works() {
    let by = ["env", "--default-signal=TERM", "--ignore-signal=INT"];
    let mut child = Process::start_by(&by, TEST, "polite");
    child.read_until("ready");
    child.wait_for_handlers(&[SIGTERM]);
    child.send(SIGINT);
    child.send(SIGTERM);
    child.read_until("ended: Stop(Terminate), is left: false");
    let err = child.wait_for_success();
    assert!(err.starts_with("SIGINT was ignored when the program started"), "{err}");
}
