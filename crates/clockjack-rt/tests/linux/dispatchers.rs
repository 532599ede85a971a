//! The threads of a runtime's dispatchers, counted by name.

use core::time::Duration;

use clockjack_rt::{
    Runtime,
    actor::{Next, Props},
};

use crate::switches::n_threads;

#[test]
fn the_threads_of_dispatchers_end_with_the_runtime() {
    let runtime = Runtime::new("t").unwrap();
    let system = runtime.system();
    system.dispatcher("cjt-apart", 3).unwrap();
    let pinned = system.pinned("cjt-pin").unwrap();
    system.spawn_pinned(&pinned, "a", Props::from_fn(|_, (): ()| Ok(Next::Stay))).unwrap();
    let count = || (n_threads("cjt-apart").unwrap(), n_threads("cjt-pin").unwrap());
    assert_eq!(count(), (3, 1));
    assert!(runtime.shutdown(Duration::from_secs(60)).is_clean());
    assert_eq!(count(), (0, 0));
}
