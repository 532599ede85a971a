//! Several workers on one thread, turned by hand in any order: who steals from whom, who comes and
//! who leaves, who wakes late.

mod clerk;

use alloc::{boxed::Box, format, sync::Arc, vec::Vec};

use clockjack_exec::{
    Commands, Handle, Limits,
    engine::{Engine, EngineConfig},
    engine_ref::EngineRef,
    watch::Watch,
    worker::hand::{Hand, Turned},
};

use self::clerk::Shared;
use crate::{
    clock::RESOLUTION,
    fault::Class,
    law::Law,
    random::Stream,
    run::{About, World},
    shop::{Rest, Shop, ShopHost},
    stage::{Mode, Stage},
};

/// For how many ticks steps may be slow between two looks from outside.
const SLOW_MAX: u64 = 50;
/// After how many turns in one moment the workers count as never idle.
const TURNS_MAX: u64 = 30_000;
/// After how long in one step a worker is reported.
const REPORT_AFTER_NANOS: u64 = 1_000_000_000;
/// How far behind all sleeps are over, in ticks.
const SLEEPS_MAX: u64 = 500;

/// The executor with several workers: wake-ups, conservation, timers of workers that come and go.
#[derive(Clone, Copy, Debug)]
pub struct Workers;

impl World for Workers {
    fn about(&self) -> About {
        use Class::{ClockBack, Kill, MailFlood, MetronomeLate, WorkerComes, WorkerLeaves};
        use Law::{A2, L1, M1, S2, T1, T2, X1, X2, X3};
        About {
            name: "workers",
            faults: &[
                Class::EVERYDAY,
                &[ClockBack, MailFlood, Kill, WorkerLeaves, WorkerComes, MetronomeLate],
            ],
            laws: &[X1, X2, X3, T1, T2, A2, M1, S2, L1],
            least_records: 200,
            least_comparisons: 200,
        }
    }

    fn play(&self, stage: &Stage) {
        let seats = usize::try_from(stage.setting("seats", 1, 5)).unwrap_or(1);
        let shop = Shop::new(stage, seats);
        let messages = usize::try_from(stage.setting("messages", 4, 40)).unwrap_or(4);
        let config = EngineConfig {
            seats,
            node: 0,
            limits: Limits::DEFAULT.messages(messages).processes(1 << 10),
            resolution: RESOLUTION,
            grace_ticks: 2,
            quiet_looks_max: 2,
        };
        let host = Box::new(ShopHost(Arc::clone(&shop)));
        match Engine::new(host, &config, Commands::new()) {
            Ok(engine) => Play::new(stage, &shop, engine, seats).play(),
            Err(error) => stage.check(Law::M1, false, || format!("no start: {error}")),
        }
        let n_left = Arc::strong_count(&shop) as u64 - 1;
        stage.check_equal(Law::S2, "engines that are left", n_left, 0);
    }
}

struct Play {
    stage: Stage,
    shared: Shared,
    shop: Arc<Shop>,
    engine: EngineRef,
    hands: Vec<Option<(Hand, Rest)>>,
    watch: Watch,
    metronome: Rest,
    work: Stream,
    order: Stream,
    steps: u64,
    pace: u64,
    busy: u64,
}

impl Play {
    fn new(stage: &Stage, shop: &Arc<Shop>, engine: EngineRef, seats: usize) -> Self {
        Self {
            stage: stage.clone(),
            shared: Shared::new(stage, Handle::new(engine.clone())),
            shop: Arc::clone(shop),
            engine,
            hands: (0..seats).map(|_| None).collect(),
            watch: Watch::new(seats, REPORT_AFTER_NANOS),
            metronome: Rest::Awake,
            work: stage.stream("work"),
            order: stage.stream("order"),
            steps: stage.setting("steps", 80, 250),
            pace: stage.setting("pace", 1, 40),
            busy: stage.setting("busy", 2, 8),
        }
    }

    fn play(mut self) {
        (0..self.hands.len()).for_each(|seat| self.come(seat));
        for _ in 0..self.busy * 3 {
            self.shared.spawn();
        }
        for _ in 0..self.stage.setting("processes", 1, 4) {
            self.shared.submit();
        }
        for _ in 0..self.steps {
            self.step();
            if self.stage.is_broken() {
                break;
            }
        }
        if self.stage.mode() == Mode::Liveness && !self.stage.is_broken() {
            self.come_to_rest();
        }
        self.end();
    }

    fn come(&mut self, seat: usize) {
        if self.hands[seat].is_none() {
            self.stage.note("come", &[seat as u64]);
            self.hands[seat] = Some((Hand::new(&self.engine, seat), Rest::Awake));
        }
    }

    fn step(&mut self) {
        self.stage.allow_slowness(SLOW_MAX);
        for _ in 0..self.work.below(self.busy * 2) {
            self.act();
        }
        self.disturb();
        // Nobody is there: not for long.
        if !self.has_workers() && self.work.chance(3_000) {
            self.come(0);
        }
        self.pass();
        if self.run() {
            self.check_quiet();
        }
    }

    fn act(&mut self) {
        let (n_cards, n_tills) = {
            let books = self.shared.books();
            (books.cards.len(), books.tills.len())
        };
        match self.work.below(10) {
            0..6 => self.shared.give(self.work.index(n_cards)),
            6 => self.shared.spawn(),
            _ => self.shared.send(self.work.index(n_tills)),
        }
    }

    fn disturb(&mut self) {
        if let Some(size) = self.stage.fault(Class::MailFlood) {
            let n_tills = self.shared.books().tills.len() as u64;
            let to = usize::try_from(size % n_tills.max(1)).unwrap_or(0);
            (0..60).for_each(|_| self.shared.send(to));
        }
        if let Some(size) = self.stage.fault(Class::Kill) {
            let books = self.shared.books();
            let at = size % books.cards.len().max(1) as u64;
            let pid =
                books.joins.get(&usize::try_from(at).unwrap_or(0)).and_then(|join| join.pid());
            drop(books);
            if let Some(pid) = pid {
                let is_found = self.engine.terminate(pid);
                self.stage.note("kill", &[at, u64::from(is_found)]);
            }
        }
    }

    /// Workers come and go, at any moment.
    fn churn(&mut self) {
        let n_seats = self.hands.len();
        let seat = |size: u64| usize::try_from(size % n_seats as u64).unwrap_or(0);
        if let Some(size) = self.stage.fault(Class::WorkerLeaves)
            && self.hands[seat(size)].is_some()
        {
            self.stage.note("dismiss", &[seat(size) as u64]);
            self.engine.dismiss(seat(size));
        }
        if let Some(size) = self.stage.fault(Class::WorkerComes) {
            self.come(seat(size));
        }
    }

    fn pass(&mut self) {
        let mut ticks = self.work.below(self.pace * 2);
        if let Some(size) = self.stage.fault(Class::ClockJump) {
            ticks += [300, 3_000, 1 << 21][usize::try_from(size % 3).unwrap_or(0)];
        }
        if self.stage.fault(Class::ClockStill).is_some() {
            ticks = 0;
        }
        let clock = self.stage.clock();
        if let Some(size) = self.stage.fault(Class::ClockBack) {
            clock.go_back(1 + size % 60);
        }
        clock.advance(ticks);
    }

    /// Turns whoever is awake or was woken, in any order, until nobody is. Whether it came to that:
    /// no wake was held back.
    fn run(&mut self) -> bool {
        let mut is_complete = true;
        for _ in 0..TURNS_MAX {
            let now = self.stage.clock().raw();
            let mut awake: Vec<usize> = Vec::new();
            for (seat, hand) in self.hands.iter().enumerate() {
                let Some((_, rest)) = hand else { continue };
                let is_awake = *rest == Rest::Awake;
                if !is_awake && !rest.is_over(now) && !self.shop.is_called(seat) {
                    if self.stage.fault(Class::SpuriousWake).is_some() {
                        awake.push(seat);
                    }
                    continue;
                }
                if !is_awake && self.stage.fault(Class::LateWake).is_some() {
                    is_complete = false;
                    continue;
                }
                awake.push(seat);
            }
            if self.metronome.is_over(now) || self.shop.is_metronome_called() {
                if self.stage.fault(Class::MetronomeLate).is_none() {
                    awake.push(self.hands.len());
                } else {
                    is_complete = false;
                }
            }
            if awake.is_empty() {
                return is_complete;
            }
            is_complete = true;
            let seat = awake[self.order.index(awake.len())];
            self.turn(seat);
            self.churn();
        }
        self.stage.check(Law::X1, false, || format!("not idle after {TURNS_MAX} turns"));
        false
    }

    fn turn(&mut self, seat: usize) {
        if seat == self.hands.len() {
            self.shop.answer_metronome();
            let until = self.watch.look(&self.engine, |_| {});
            self.metronome = Rest::Asleep(until.map(clockjack_time::Tick::get));
            return;
        }
        self.shop.answer(seat);
        let Some((hand, rest)) = &mut self.hands[seat] else { return };
        let turned = hand.turn();
        *rest = Rest::of(turned);
        if turned == Turned::Left {
            self.stage.note("left", &[seat as u64]);
            self.hands[seat] = None;
        }
    }

    fn has_workers(&self) -> bool {
        self.hands.iter().any(Option::is_some)
    }

    /// Nobody has anything to do: no token is unseen, no sleep is overdue, all is accounted for.
    fn check_quiet(&mut self) {
        if !self.has_workers() {
            return;
        }
        let now = self.stage.clock().raw();
        let stage = self.stage.clone();
        let books = self.shared.books();
        for (index, card) in books.cards.iter().enumerate().filter(|(_, card)| !card.is_over) {
            let tokens = card.tokens;
            stage.check(Law::X1, tokens == 0, || format!("future {index} has {tokens} tokens"));
            stage.check(Law::T2, card.due.is_none_or(|due| due > now), || {
                format!("the sleep of future {index} is due: {:?}", card.due)
            });
        }
        for (index, till) in books.tills.iter().enumerate().filter(|(_, till)| !till.is_over) {
            let n = till.sent.len();
            stage.check(Law::X1, n == 0, || format!("process {index} has {n} messages"));
        }
        let stats = self.engine.stats();
        let live = stats.spawned - stats.finished;
        stage.check_equal(Law::X3, "spawned", stats.spawned, books.n_spawned);
        stage.check_equal(Law::X3, "alive", live, books.n_spawned - books.n_ended);
        stage.note("quiet", &[now, live]);
    }

    /// Nothing fails any more: every token is seen and every sleep ends.
    fn come_to_rest(&mut self) {
        self.stage.heal();
        self.come(0);
        self.run();
        // One that was asked to leave before has left by now.
        self.come(0);
        self.shared.books().deeds = None;
        let n_cards = self.shared.books().cards.len();
        (0..n_cards).for_each(|index| self.shared.give(index));
        let behind = self.stage.now() - self.stage.clock().raw();
        for _ in 0..3 {
            let is_quiet = self.run();
            self.stage.check(Law::L1, is_quiet, || "not quiet though nothing fails".into());
            self.check_quiet();
            self.stage.clock().advance(behind + SLEEPS_MAX);
        }
        let is_quiet = self.run();
        let n_asleep = self.shared.books().cards.iter().filter(|card| card.due.is_some()).count();
        self.stage.check(Law::L1, is_quiet && n_asleep == 0, || format!("{n_asleep} sleep on"));
    }

    /// Ends it all.
    fn end(&mut self) {
        self.stage.heal();
        self.shared.books().deeds = None;
        let is_first = self.engine.stop();
        self.stage.check(Law::S2, is_first && !self.engine.stop(), || "stopped twice".into());
        (0..self.hands.len()).for_each(|seat| self.come(seat));
        self.run();
        self.engine.terminate_all(|_| {});
        self.run();
        let (joins, refs) = {
            let mut books = self.shared.books();
            (core::mem::take(&mut books.joins), core::mem::take(&mut books.refs))
        };
        let refused = self.shared.handle.spawn(async {});
        self.stage.check(Law::S2, refused.pid().is_none(), || "taken after the end".into());
        drop((refused, joins, refs));
        self.hands.iter_mut().for_each(|hand| *hand = None);
        self.engine.close_timers();
        self.engine.close();
        let stats = self.engine.stats();
        self.stage.note("end", &[stats.spawned, stats.stolen]);
        self.stage.check_equal(Law::S2, "alive", stats.spawned - stats.finished, 0);
        let books = self.shared.books();
        self.stage.check_equal(Law::X3, "ended", books.n_ended, books.n_spawned);
    }
}
