//! Events that are counted while the value of the slot is made.

use alloc::sync::Arc;

use loom::thread;

use crate::counting_slot::CountingSlot;

/// One thread counts twice, another once, and two make the value.
#[test]
fn each_event_is_counted_once_if_two_threads_make_the_value() {
    loom::model(|| {
        let slot = Arc::new(CountingSlot::<u64>::new());
        slot.count();
        let threads = [true, false].map(|counts_first| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                if counts_first {
                    slot.count();
                }
                let made = *slot.get_or_insert_with(|| u64::from(counts_first));
                slot.count();
                made
            })
        });
        let made = threads.map(|thread| thread.join().expect("nobody panics"));
        assert_eq!(made[0], made[1], "one value was made");
        assert_eq!(slot.get(), Some(&made[0]));
        assert_eq!(slot.n_counted(), 4);
    });
}
