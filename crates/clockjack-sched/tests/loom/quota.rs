//! Permit caches and a direct taker on one quota, and pressure that comes in between. A block is 2
//! here.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use clockjack_sched::{
    BackpressureLink, PermitCache, PressureReason::Host, Quota, TimerPriority::Normal,
};
use clockjack_sync::Arc as SyncArc;
use loom::thread;

/// Counts what lives, and the most that ever did. Plain counters: they order nothing in the model.
#[derive(Clone, Default)]
struct Ghost(Arc<(AtomicUsize, AtomicUsize)>);

impl Ghost {
    fn born(&self) {
        let live = self.0.0.fetch_add(1, SeqCst) + 1;
        self.0.1.fetch_max(live, SeqCst);
    }

    fn dies(&self) {
        self.0.0.fetch_sub(1, SeqCst);
    }

    fn most(&self) -> usize {
        self.0.1.load(SeqCst)
    }
}

/// Takes so often, gives back what it got, and settles.
fn use_permit_cache(quota: &Quota, ghost: &Ghost, takes: usize) {
    let mut permits = PermitCache::new(2);
    let mut live = 0;
    for _ in 0..takes {
        if permits.acquire(quota, Normal).is_ok() {
            ghost.born();
            live += 1;
        }
    }
    for _ in 0..live {
        ghost.dies();
        permits.release(quota);
    }
    permits.flush(quota);
}

#[test]
fn two_permit_caches_and_a_direct_taker_never_exceed_the_limit_and_nothing_leaks() {
    loom::model(|| {
        let quota = SyncArc::new(Quota::new(3, 1));
        let ghost = Ghost::default();
        let users = [1, 2].map(|takes| {
            let (quota, ghost) = (quota.clone(), ghost.clone());
            thread::spawn(move || use_permit_cache(&quota, &ghost, takes))
        });
        let (other, seen) = (quota.clone(), ghost.clone());
        let direct = thread::spawn(move || {
            if other.acquire_one(Normal).is_ok() {
                seen.born();
                assert!(other.granted() <= 3);
                seen.dies();
                other.release_one();
            }
        });
        for user in users {
            user.join().unwrap();
        }
        direct.join().unwrap();
        assert!(ghost.most() <= 3, "{} lived", ghost.most());
        assert_eq!(quota.granted(), 0);
    });
}

#[test]
fn once_pressed_nothing_is_granted_beyond_the_smaller_limit() {
    loom::model(|| {
        let quota = SyncArc::new(Quota::new(4, 1));
        let takers = [(); 2].map(|()| {
            let quota = quota.clone();
            thread::spawn(move || {
                let mut permits = PermitCache::new(2);
                let taken = usize::from(permits.acquire(&quota, Normal).is_ok());
                (taken, permits)
            })
        });
        let other = quota.clone();
        let presser = thread::spawn(move || {
            assert!(BackpressureLink::new(other.clone()).engage(Host).is_some());
            other.granted()
        });
        let ends = takers.map(|taker| taker.join().unwrap());
        let at_press = presser.join().unwrap();
        let granted = quota.granted();
        assert!(granted <= at_press.max(1), "{granted} granted, {at_press} when pressed");
        let accounted: usize =
            ends.iter().map(|(taken, permits)| taken + permits.available()).sum();
        assert_eq!(granted, accounted);
    });
}

#[test]
fn one_of_two_refused_threads_has_news() {
    loom::model(|| {
        let quota = SyncArc::new(Quota::new(1, 1));
        quota.acquire_one(Normal).unwrap();
        let threads = [(); 2].map(|()| {
            let quota = quota.clone();
            thread::spawn(move || {
                quota.acquire_one(Normal).is_err() && quota.should_report_refusal()
            })
        });
        let news = threads.map(|thread| thread.join().unwrap());
        assert_eq!(news.iter().filter(|is_news| **is_news).count(), 1);
    });
}

#[test]
fn changes_of_pressure_alternate_and_none_is_left_over() {
    loom::model(|| {
        let quota = SyncArc::new(Quota::new(2, 1));
        let threads = [(); 2].map(|()| {
            let link = BackpressureLink::new(quota.clone());
            thread::spawn(move || {
                let began = link.engage(Host).is_some();
                let ended = link.release(Host).is_some();
                (usize::from(began), usize::from(ended))
            })
        });
        let changes = threads.map(|thread| thread.join().unwrap());
        let began: usize = changes.iter().map(|(began, _)| began).sum();
        let ended: usize = changes.iter().map(|(_, ended)| ended).sum();
        assert!(began >= 1);
        assert_eq!(began, ended);
        assert!(!quota.is_under_pressure());
    });
}
