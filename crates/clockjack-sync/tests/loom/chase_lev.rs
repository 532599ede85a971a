//! A Chase-Lev deque whose thieves take half by one compare-exchange: the design that the ring
//! avoids.
//!
//! Memory orders are those of Lê, Pop, Cohen and Zappa Nardelli (PPoPP 2013), who prove the deque
//! for single steals. With a batch it is broken, whatever the orders: the owner takes the item at
//! `bottom` without a compare-exchange as long as `top` is below it, and so does not notice a thief
//! that has read `top` and `bottom` before and is about to move `top` by more than one.
//!
//! ```text
//!   items 0 1 2 3, top = 0, bottom = 4
//!   thief reads top = 0, bottom = 4, wants two: copies items 0 and 1
//!   owner pops 3, 2, 1: each time top = 0 < bottom, no exchange             bottom = 1
//!   thief moves top from 0 to 2: success                                    item 1 is doubled
//!   owner pushes item 4 at position 1: bottom = 2 = top, the deque is empty  item 4 is lost
//! ```

use clockjack_sync::primitive::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use loom::sync::{Arc, atomic::AtomicI32};

use crate::ring::Stealing;

const N: usize = 4;

pub(crate) struct Words {
    top: AtomicI32,
    bottom: AtomicI32,
    items: [AtomicU32; N],
}

impl Words {
    fn item(&self, position: i32) -> &AtomicU32 {
        &self.items[position.cast_unsigned() as usize % N]
    }

    fn push(&self, item: u32, spilled: &mut Vec<u32>) {
        let bottom = self.bottom.load(Relaxed);
        let top = self.top.load(Acquire);
        if bottom - top >= i32::try_from(N).unwrap() {
            return spilled.push(item);
        }
        self.item(bottom).store(item, Relaxed);
        self.bottom.store(bottom + 1, Release);
    }

    fn pop(&self) -> Option<u32> {
        let bottom = self.bottom.load(Relaxed) - 1;
        self.bottom.store(bottom, Relaxed);
        fence(SeqCst);
        let top = self.top.load(Relaxed);
        if top > bottom {
            self.bottom.store(bottom + 1, Relaxed);
            return None;
        }
        let item = self.item(bottom).load(Relaxed);
        if top == bottom {
            let won = self.top.compare_exchange(top, top + 1, SeqCst, Relaxed).is_ok();
            self.bottom.store(bottom + 1, Relaxed);
            return won.then_some(item);
        }
        Some(item)
    }

    fn steal(&self, max: i32) -> Vec<u32> {
        let top = self.top.load(Acquire);
        fence(SeqCst);
        let bottom = self.bottom.load(Acquire);
        let waiting = bottom - top;
        if waiting <= 0 {
            return Vec::new();
        }
        let n = (waiting - waiting / 2).min(max);
        let stolen = (0..n).map(|i| self.item(top + i).load(Relaxed)).collect();
        match self.top.compare_exchange(top, top + n, SeqCst, Relaxed) {
            Ok(_) => stolen,
            Err(_) => Vec::new(),
        }
    }
}

/// Steals half by one exchange.
pub(crate) struct Deque;

/// Steals one.
pub(crate) struct SingleSteal;

macro_rules! stealing {
    ($deque:ty, $max:expr) => {
        impl Stealing for $deque {
            type Owner = Arc<Words>;
            type Thief = Arc<Words>;

            fn new() -> Arc<Words> {
                Arc::new(Words {
                    top: AtomicI32::new(0),
                    bottom: AtomicI32::new(0),
                    items: core::array::from_fn(|_| AtomicU32::new(0)),
                })
            }

            fn thief(owner: &Arc<Words>) -> Arc<Words> {
                Arc::clone(owner)
            }

            fn push(owner: &mut Arc<Words>, item: u32, spilled: &mut Vec<u32>) {
                Words::push(owner, item, spilled);
            }

            fn pop(owner: &mut Arc<Words>) -> Option<u32> {
                Words::pop(owner)
            }

            fn steal(thief: &Arc<Words>) -> Vec<u32> {
                Words::steal(thief, $max)
            }
        }
    };
}

stealing!(Deque, i32::MAX);
stealing!(SingleSteal, 1);
