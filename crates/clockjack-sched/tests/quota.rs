//! The quota: its limits, its blocks, its pressure, and when a refusal is news.

use std::thread;

use clockjack_sched::{
    BackpressureLink, PermitCache, PressureChange,
    PressureReason::{Dispatcher, Host, Mailboxes},
    Quota,
    ScheduleErrorKind::{Backpressured, QuotaExceeded},
    TimerPriority::{self, High, Low, Normal},
    Warning,
};
use clockjack_sync::Arc;
use proptest::prelude::*;

fn take_many(permits: &mut PermitCache, quota: &Quota, class: TimerPriority) -> usize {
    let mut taken = 0;
    while permits.acquire(quota, class).is_ok() {
        taken += 1;
    }
    taken
}

fn linked(limit: usize, pressed: usize) -> (Arc<Quota>, BackpressureLink) {
    let quota = Arc::new(Quota::new(limit, pressed));
    let link = BackpressureLink::new(quota.clone());
    (quota, link)
}

#[test]
fn with_one_shard_the_limit_is_exact() {
    let quota = Quota::new(100, 50);
    let mut permits = PermitCache::new(1);
    assert_eq!(take_many(&mut permits, &quota, Normal), 100);
    assert_eq!(permits.acquire(&quota, High), Err(QuotaExceeded));
    assert_eq!(quota.acquire_one(Normal), Err(QuotaExceeded));
    permits.release(&quota);
    assert_eq!((permits.available(), quota.granted()), (0, 99));
    quota.acquire_one(Low).unwrap();
    assert_eq!(permits.acquire(&quota, Normal), Err(QuotaExceeded));
    quota.release_one();
    permits.acquire(&quota, Normal).unwrap();
}

#[test]
fn with_many_shards_credits_are_borrowed_by_the_block() {
    let quota = Quota::new(150, 75);
    let (mut one, mut two) = (PermitCache::new(2), PermitCache::new(2));
    one.acquire(&quota, Normal).unwrap();
    assert_eq!((one.available(), quota.granted()), (63, 64));
    two.acquire(&quota, Normal).unwrap();
    assert_eq!((two.available(), quota.granted()), (63, 128));
    // One more block does not fit: what is left is granted.
    assert_eq!(take_many(&mut one, &quota, Normal), 63 + 22);
    assert_eq!(one.acquire(&quota, Normal), Err(QuotaExceeded));
    // It came early by what the other one has not spent, and no more.
    assert_eq!(take_many(&mut two, &quota, Normal), 63);
    assert_eq!(quota.granted(), 150);
}

#[test]
fn a_permit_cache_keeps_one_block_at_most_and_returns_half_when_it_has_more() {
    let quota = Quota::new(1000, 500);
    let mut permits = PermitCache::new(4);
    for _ in 0..256 {
        permits.acquire(&quota, Normal).unwrap();
    }
    assert_eq!((permits.available(), quota.granted()), (0, 256));
    for live in (0..256).rev() {
        permits.release(&quota);
        assert!(permits.available() <= 64, "{} permits are kept", permits.available());
        assert_eq!(quota.granted(), live + permits.available());
    }
    let settled = permits.available();
    assert!(settled >= 32);
    permits.flush(&quota);
    assert_eq!((permits.available(), quota.granted()), (0, 0));
}

#[test]
fn a_take_and_a_give_at_the_edge_of_a_block_do_not_go_to_the_quota_again() {
    let quota = Quota::new(1000, 500);
    let mut permits = PermitCache::new(2);
    for _ in 0..65 {
        permits.acquire(&quota, Normal).unwrap();
    }
    for _ in 0..2 {
        permits.release(&quota);
    }
    let granted = quota.granted();
    assert_eq!((granted, permits.available()), (95, 32));
    for _ in 0..10 {
        permits.acquire(&quota, Normal).unwrap();
        permits.release(&quota);
        permits.release(&quota);
        permits.acquire(&quota, Normal).unwrap();
        assert_eq!(quota.granted(), granted);
    }
}

#[test]
fn under_pressure_the_smaller_limit_holds_and_low_is_refused_at_once() {
    let (quota, link) = linked(100, 50);
    let mut permits = PermitCache::new(1);
    for _ in 0..20 {
        permits.acquire(&quota, Low).unwrap();
    }
    assert_eq!(quota.limit(), 100);
    assert!(link.engage(Host).is_some());
    assert_eq!(quota.limit(), 50);
    assert_eq!(permits.acquire(&quota, Low), Err(Backpressured));
    assert_eq!(take_many(&mut permits, &quota, Normal), 30);
    assert_eq!(permits.acquire(&quota, High), Err(Backpressured));
    assert!(link.release(Host).is_some());
    assert_eq!(take_many(&mut permits, &quota, Low), 50);
    assert!(link.engage(Host).is_some());
    // As many as ever may: the pressure is not the reason.
    assert_eq!(permits.acquire(&quota, High), Err(QuotaExceeded));
    assert_eq!(quota.acquire_one(Normal), Err(QuotaExceeded));
    assert_eq!(permits.acquire(&quota, Low), Err(Backpressured));
}

#[test]
fn under_pressure_a_permit_cache_gives_back_what_it_has_not_spent() {
    let (quota, link) = linked(1000, 10);
    let (mut one, mut two) = (PermitCache::new(2), PermitCache::new(2));
    one.acquire(&quota, Normal).unwrap();
    two.acquire(&quota, Normal).unwrap();
    assert!(link.engage(Mailboxes).is_some());
    // What the other one has not spent counts until it is used.
    assert_eq!(one.acquire(&quota, High), Err(Backpressured));
    assert_eq!((one.available(), quota.granted()), (0, 65));
    two.release(&quota);
    assert_eq!((two.available(), quota.granted()), (0, 1));
    assert_eq!(take_many(&mut one, &quota, High), 9);
    assert_eq!((one.available(), quota.granted()), (0, 10));
}

#[test]
fn a_pressed_limit_above_the_full_one_is_the_full_one() {
    let (quota, link) = linked(10, 20);
    assert!(link.engage(Host).is_some());
    assert_eq!(quota.limit(), 10);
    assert_eq!(Quota::new(usize::MAX, usize::MAX).limit(), usize::MAX / 16);
}

#[test]
fn pressure_lasts_as_long_as_there_is_a_reason() {
    let (quota, link) = linked(10, 5);
    assert_eq!(link.engage(Mailboxes), Some(PressureChange { engaged: true, reason: Mailboxes }));
    assert_eq!(link.engage(Mailboxes), None);
    assert_eq!(link.engage(Dispatcher), None);
    assert_eq!(link.release(Mailboxes), None);
    assert_eq!(link.release(Host), None);
    assert!(quota.is_under_pressure());
    let change = link.release(Dispatcher).unwrap();
    assert_eq!(
        Warning::from(change),
        Warning::BackpressureState { engaged: false, reason: Dispatcher }
    );
    assert_eq!(link.release(Dispatcher), None);
    assert!(!link.is_engaged());
}

#[test]
fn a_level_engages_at_its_threshold_and_releases_at_half_of_it() {
    fn check(link: &BackpressureLink, levels: &[(u8, Option<bool>)]) {
        for &(level, expected) in levels {
            let change = link.set(Mailboxes, level).map(|change| change.engaged);
            assert_eq!(change, expected, "at {level} %");
        }
    }
    let (_, link) = linked(10, 5);
    let levels = [
        (0, None),
        (79, None),
        (80, Some(true)),
        (100, None),
        (79, None),
        (41, None),
        (40, Some(false)),
        (79, None),
        (255, Some(true)),
        (0, Some(false)),
    ];
    check(&link, &levels);
    check(&link.clone().threshold(30), &[(29, None), (30, Some(true)), (16, None)]);
    check(&link.clone().threshold(30), &[(15, Some(false))]);
    check(&link.threshold(0), &[(0, None), (1, Some(true)), (0, Some(false))]);
}

#[test]
fn the_first_refusal_at_the_limit_is_news_until_something_is_granted_again() {
    let quota = Quota::new(2, 1);
    assert!(!quota.should_report_refusal());
    quota.acquire_one(Normal).unwrap();
    quota.acquire_one(Normal).unwrap();
    assert!(quota.acquire_one(Normal).is_err());
    assert!(quota.should_report_refusal());
    assert!(!quota.should_report_refusal());
    quota.release_one();
    assert!(!quota.should_report_refusal());
    quota.acquire_one(Normal).unwrap();
    assert!(quota.acquire_one(Normal).is_err());
    assert!(quota.should_report_refusal());
    assert_eq!(quota.granted(), 2);
}

#[test]
fn a_refusal_for_its_class_alone_is_no_news() {
    let (quota, link) = linked(10, 2);
    assert!(link.engage(Host).is_some());
    assert_eq!(quota.acquire_one(Low), Err(Backpressured));
    assert!(!quota.should_report_refusal());
    quota.acquire_one(Normal).unwrap();
    quota.acquire_one(Normal).unwrap();
    assert_eq!(quota.acquire_one(Normal), Err(Backpressured));
    assert!(quota.should_report_refusal());
}

#[test]
fn threads_never_exceed_the_limit_and_lose_no_credit() {
    const LIMIT: usize = 300;
    let quota = Quota::new(LIMIT, LIMIT / 2);
    thread::scope(|scope| {
        for thread in 0..4_usize {
            let quota = &quota;
            scope.spawn(move || {
                let mut permits = PermitCache::new(4);
                let mut live = 0_usize;
                for round in 0..20_000_usize {
                    if (round / 97 + thread).is_multiple_of(2) {
                        live += usize::from(permits.acquire(quota, Normal).is_ok());
                    } else if live > 0 {
                        live -= 1;
                        permits.release(quota);
                    }
                    assert!(quota.granted() <= LIMIT);
                    assert!(live + permits.available() <= LIMIT);
                }
                for _ in 0..live {
                    permits.release(quota);
                }
                permits.flush(quota);
            });
        }
    });
    assert_eq!(quota.granted(), 0);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(usize, TimerPriority),
    Give(usize),
    TakeOne(TimerPriority),
    GiveOne,
    Press(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![Just(Low), Just(Normal), Just(High)];
    prop_oneof![
        8 => (0..3_usize, class.clone()).prop_map(|(permits, class)| Step::Take(permits, class)),
        5 => (0..3_usize).prop_map(Step::Give),
        2 => class.prop_map(Step::TakeOne),
        1 => Just(Step::GiveOne),
        1 => any::<bool>().prop_map(Step::Press),
    ]
}

proptest! {
    /// After each step: granted = available + live, within the limit unless it shrank meanwhile,
    /// and a refusal came no earlier than the other permit caches' blocks explain.
    #[test]
    fn the_books_balance_after_each_step(steps in prop::collection::vec(step(), 1..600)) {
        const LIMIT: usize = 200;
        let (quota, link) = linked(LIMIT, 100);
        let mut permit_caches = [const { PermitCache::new(3) }; 3];
        let mut live = [0_usize; 4];
        for step in steps {
            let before = quota.granted();
            let limit = quota.limit();
            let is_under_pressure = quota.is_under_pressure();
            let mut refusal = None;
            match step {
                Step::Take(at, class) => match permit_caches[at].acquire(&quota, class) {
                    Ok(()) => live[at] += 1,
                    Err(kind) => refusal = Some((kind, class)),
                },
                Step::TakeOne(class) => match quota.acquire_one(class) {
                    Ok(()) => live[3] += 1,
                    Err(kind) => refusal = Some((kind, class)),
                },
                Step::Give(at) if live[at] > 0 => {
                    live[at] -= 1;
                    permit_caches[at].release(&quota);
                }
                Step::GiveOne if live[3] > 0 => {
                    live[3] -= 1;
                    quota.release_one();
                }
                Step::Press(true) => _ = link.engage(Host),
                Step::Press(false) => _ = link.release(Host),
                Step::Give(_) | Step::GiveOne => {}
            }
            let n_live: usize = live.iter().sum();
            let available: usize = permit_caches.iter().map(PermitCache::available).sum();
            prop_assert_eq!(quota.granted(), n_live + available);
            prop_assert!(quota.granted() <= limit.max(before));
            prop_assert!(permit_caches.iter().all(|permits| permits.available() <= 64));
            if let Some((kind, class)) = refusal {
                let is_low = is_under_pressure && class == Low;
                prop_assert!(is_low || n_live + 64 * 3 >= limit);
                let is_pressure = is_low || (is_under_pressure && n_live + available < LIMIT);
                prop_assert_eq!(kind == Backpressured, is_pressure);
            }
        }
    }
}
