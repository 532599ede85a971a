//! The striped counter and the `Arc`.

use clockjack_sync::{Arc, counter::StripedCounter};
use loom::{sync::Arc as LoomArc, thread};

use crate::tracked::Live;

#[test]
fn the_sum_is_exact_after_everyone_has_written() {
    loom::model(|| {
        let counter = LoomArc::new(StripedCounter::new());
        let other = LoomArc::clone(&counter);
        let same_stripe = thread::spawn(move || other.add(32, 3));
        let other = LoomArc::clone(&counter);
        let other_stripe = thread::spawn(move || other.sub(1, 1));
        counter.add(0, 2);
        same_stripe.join().unwrap();
        other_stripe.join().unwrap();
        assert_eq!(counter.sum(), 4);
    });
}

#[test]
fn the_last_arc_drops_the_value_after_all_uses() {
    loom::model(|| {
        let live = Live::default();
        let pointer = Arc::new(live.item(7));
        let use_and_drop = |pointer: Arc<_>| thread::spawn(move || drop(pointer));
        let (one, two) = (use_and_drop(pointer.clone()), use_and_drop(pointer.clone()));
        drop(pointer);
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(live.count(), 0);
    });
}
