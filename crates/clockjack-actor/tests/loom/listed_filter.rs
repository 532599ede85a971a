//! The tables of a system: listers against the last poll of an actor.

use alloc::sync::Arc;

use clockjack_actor::Pid;
use clockjack_sync::{
    primitive::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire},
    },
    spin_lock::SpinLock,
};
use loom::thread;

use crate::listed_filter::ListedFilter;

struct Scene {
    listed: ListedFilter,
    has_stopped: AtomicBool,
    is_in_table: SpinLock<bool>,
}

#[test]
fn an_actor_that_ends_while_it_is_listed_does_not_stay() {
    loom::model(|| {
        let pid: Pid = "{0|1.1}".parse().expect("a pid");
        let scene = Arc::new(Scene {
            listed: ListedFilter::new(),
            has_stopped: AtomicBool::new(false),
            is_in_table: SpinLock::new(false),
        });
        let of_runner = Arc::clone(&scene);
        let runner = thread::spawn(move || {
            let Scene { listed, has_stopped, is_in_table } = &*of_runner;
            has_stopped.fetch_or(true, AcqRel);
            if listed.may_contain(pid) {
                is_in_table.with(|is_in| *is_in = false);
            }
        });
        let of_lister = Arc::clone(&scene);
        let lister = thread::spawn(move || {
            let Scene { listed, has_stopped, is_in_table } = &*of_lister;
            listed.insert(pid);
            is_in_table.with(|is_in| *is_in = true);
            if has_stopped.load(Acquire) {
                is_in_table.with(|is_in| *is_in = false);
            }
        });
        runner.join().expect("no panic");
        lister.join().expect("no panic");
        assert!(!scene.is_in_table.with(|is_in| *is_in), "it has stopped and is listed");
    });
}
