//! As a task inside a tokio application.

use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};

use clockjack_actor::{RootContext, Toolbox as _};
use clockjack_rt::TokioToolbox;
use clockjack_scenario::{Tape, builder, start};
use clockjack_time::{Resolution, Tick, TimerInstant};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{PATIENCE, check};

/// Awaits a system in a task of tokio's: its turns, and in between the bell or the next timer.
async fn drive(root: &mut RootContext, instant_of: impl Fn(Tick) -> Instant) {
    let mut alarm: Option<Pin<Box<Sleep>>> = None;
    loop {
        let goes_on = poll_fn(|cx| {
            if let Poll::Ready(goes_on) = pin!(root.dispatch_next()).poll(cx) {
                return Poll::Ready(goes_on);
            }
            // An alarm for what is due now, or was armed meanwhile; the old one is not wanted.
            alarm = root.next_wake().map(|tick| Box::pin(sleep_until(instant_of(tick))));
            match alarm.as_mut().map(|alarm| alarm.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(true),
                _ => Poll::Pending,
            }
        });
        if !goes_on.await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_task_of_tokio_leaves_the_golden_trace() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime on this thread starts").block_on(async {
        let tape = Tape::new();
        let toolbox = TokioToolbox::new(Resolution::MILLI);
        let begun = (Instant::now(), toolbox.clock().now());
        let mut root = RootContext::new(toolbox, builder(&tape)).expect("there is room");
        start(root.system(), &tape).expect("there is room");
        let end = root.system().when_terminated();
        let instant_of = move |tick| {
            let (instant, now) = begun;
            // Up to a tick too late, because the present one had begun before.
            instant + TimerInstant::new(tick, Resolution::MILLI).since(now)
        };
        let driven = tokio::time::timeout(PATIENCE, drive(&mut root, instant_of));
        driven.await.expect("it ends by itself");
        check(&tape, &end.report().expect("it has terminated"));
    });
}
