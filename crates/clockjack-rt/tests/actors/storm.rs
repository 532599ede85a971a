//! Actors under all that is made for one thread's use at a time, by many: asks, waits for room,
//! futures, timers, restarts, watches, routers, services, ends.
//!
//! Every message carries a [`Token`]. Whatever became of the messages, none is left in the end, and
//! none was dropped twice.

use core::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{sync::Arc, thread};

use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{
        Actor, ActorRef, ActorSystem, Context, Failure, Mailbox, Next, Pool, Props, ReplyTo,
        ServiceKey, Signal, Strategy,
    },
};
use clockjack_testing::{InTime, Random};

use crate::in_time::ShutdownInTime as _;
use crate::{eventually::eventually, token::Token};

const LONG: Duration = Duration::from_secs(60);
const THREADS: u64 = 3;

fn start() -> InTime<Runtime> {
    let config = RuntimeConfig { workers: Some(2), ..RuntimeConfig::DEFAULT };
    let runtime =
        Runtime::start_with(ActorSystem::builder("t"), config).expect("a few threads start");
    InTime::new(runtime, RuntimeConfig::DEFAULT.drop_timeout)
}

/// The end of every scene: nothing is left.
fn end(runtime: InTime<Runtime>, alive: &Arc<AtomicI64>) {
    let report = runtime.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report:?}");
    drop(report);
    eventually("no message is left", || alive.load(SeqCst) == 0);
}

/// Runs `work` on some threads, each with numbers of its own.
fn by_threads(work: impl Fn(&mut Random) + Sync) {
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(&mut Random::new(seed)));
        }
    });
}

enum Question {
    Now(u64, Token, ReplyTo<(u64, Token)>),
    /// An answer that fits into no slot.
    Large(u64, Token, ReplyTo<([u64; 40], Token)>),
    /// Another actor answers.
    Pass(u64, Token, ReplyTo<(u64, Token)>),
    Forget(Token, ReplyTo<(u64, Token)>),
    Fail(Token, ReplyTo<(u64, Token)>),
    /// Nobody waits for an answer.
    Say(Token),
}

fn answer(_: &mut Context<'_, impl Actor>, question: Question) -> Result<Next, Failure> {
    match question {
        Question::Now(n, token, to) | Question::Pass(n, token, to) => to.reply((n + 1, token)),
        Question::Large(n, token, to) => to.reply(([n; 40], token)),
        Question::Forget(token, to) => drop((token, to)),
        Question::Say(token) => drop(token),
        Question::Fail(_token, _to) => return Err(Failure::msg("asked to")),
    }
    Ok(Next::Stay)
}

#[test]
fn every_ask_ends_whether_it_is_answered_given_up_forgotten_or_failed() {
    const EACH: u64 = 3_000;
    let runtime = start();
    let alive = Arc::new(AtomicI64::new(0));
    let answers = AtomicU64::new(0);
    let second = Props::from_fn(answer).mailbox(Mailbox::bounded(4));
    let second = runtime.spawn("second", second).expect("room");
    let first = Props::from_fn(move |cx: &mut Context<'_, _>, question: Question| {
        if let Question::Pass(..) = question {
            second.tell_or_dead_letter(question);
            return Ok(Next::Stay);
        }
        answer(cx, question)
    });
    // With little room, so that some requests wait for it.
    let first = first.mailbox(Mailbox::bounded(4)).supervise(Strategy::restart());
    let first = runtime.spawn("first", first).expect("room");
    by_threads(|random| {
        for n in 0..EACH {
            let token = Token::new(&alive);
            let short = Duration::from_micros(1 + random.below(2_000));
            match random.below(8) {
                0..3 => {
                    let ask = first.ask(|to| Question::Now(n, token, to), LONG);
                    let reply = runtime.block_on(ask);
                    // Refused if another one's failure was just settled, else answered.
                    let is_right = reply.is_ok_and(|(m, _)| m == n + 1);
                    answers.fetch_add(u64::from(is_right), SeqCst);
                }
                3 => {
                    let ask = first.ask(|to| Question::Large(n, token, to), LONG);
                    assert!(runtime.block_on(ask).is_ok_and(|(m, _)| m == [n; 40]));
                }
                4 => drop(runtime.block_on(first.ask(|to| Question::Pass(n, token, to), short))),
                5 => {
                    let ask = first.ask(|to| Question::Forget(token, to), LONG);
                    assert!(runtime.block_on(ask).is_err());
                }
                6 => {
                    let ask = first.ask(|to| Question::Fail(token, to), LONG);
                    assert!(runtime.block_on(ask).is_err());
                }
                // Given up before anybody looked.
                _ => drop(first.ask(|to| Question::Pass(n, token, to), LONG)),
            }
        }
    });
    assert!(answers.load(SeqCst) > EACH / 8, "hardly one was answered");
    drop(first);
    end(runtime, &alive);
}

/// Does with its timers whatever it is told.
struct Timed {
    random: Random,
    alive: Arc<AtomicI64>,
    fired: Arc<AtomicU64>,
}

enum Beat {
    Poke(Token),
    Fired(Token),
}

impl Timed {
    fn poke(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let key = ("k", self.random.below(6));
        let after = Duration::from_millis(self.random.below(3));
        let period = Duration::from_millis(1 + self.random.below(2));
        let alive = Arc::clone(&self.alive);
        let again = move || Beat::Fired(Token::new(&alive));
        match self.random.below(10) {
            0..4 => cx.timers().single(key, after, Beat::Fired(Token::new(&self.alive)))?,
            4 => cx.timers().fixed_rate(key, period, again)?,
            5 => cx.timers().fixed_delay(key, period, again)?,
            6 => _ = cx.timers().cancel(key),
            7 => cx.timers().cancel_all(),
            8 => cx.set_receive_timeout(period),
            _ => return Err(Failure::msg("a restart ends all timers")),
        }
        Ok(Next::Stay)
    }
}

impl Actor for Timed {
    type Msg = Beat;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Beat) -> Result<Next, Failure> {
        match msg {
            Beat::Poke(_token) => self.poke(cx),
            Beat::Fired(_token) => {
                self.fired.fetch_add(1, SeqCst);
                Ok(Next::Stay)
            }
        }
    }
}

#[test]
fn timers_that_are_set_and_cancelled_under_fire_keep_no_message() {
    const ACTORS: usize = 8;
    let runtime = start();
    let alive = Arc::new(AtomicI64::new(0));
    let fired = Arc::new(AtomicU64::new(0));
    let actors: Vec<_> = (0..ACTORS)
        .map(|n| {
            let (alive, fired) = (Arc::clone(&alive), Arc::clone(&fired));
            let seed = AtomicU64::new(n as u64);
            let props = Props::new(move || Timed {
                // After a restart, other numbers than before.
                random: Random::new(seed.fetch_add(100, SeqCst)),
                alive: Arc::clone(&alive),
                fired: Arc::clone(&fired),
            });
            let props = props.mailbox(Mailbox::unbounded()).supervise(Strategy::restart());
            runtime.spawn(&format!("{n}"), props).expect("room")
        })
        .collect();
    // Until some timers have fired, however slow the machine is.
    by_threads(|random| {
        let mut pokes = 0;
        while pokes < 5_000 || fired.load(SeqCst) < 500 {
            let n = usize::try_from(random.below(ACTORS as u64)).expect("few");
            match actors[n].tell(Beat::Poke(Token::new(&alive))) {
                Ok(()) => pokes += 1,
                // Also a mailbox without a bound of its own has that of the system.
                Err(refused) if refused.is_full() => thread::yield_now(),
                Err(refused) => panic!("it is restarted: {refused}"),
            }
            if pokes % 16 == 0 {
                thread::yield_now();
            }
        }
    });
    drop(actors);
    end(runtime, &alive);
}

/// Asks another one for each message, by a future that it may wait for.
struct Client {
    server: ActorRef<Question>,
    done: Arc<AtomicU64>,
}

impl Actor for Client {
    type Msg = (u64, Token);

    fn receive(
        &mut self,
        cx: &mut Context<'_, Self>,
        (n, token): (u64, Token),
    ) -> Result<Next, Failure> {
        let ask = self.server.ask(|to| Question::Now(n, token, to), LONG);
        let then = |me: &mut Self, _: &mut Context<'_, Self>, _| {
            me.done.fetch_add(1, SeqCst);
            Ok(Next::Stay)
        };
        // As many as there may be at a time; one that is refused is given up.
        let refused = match n % 3 {
            0 => cx.wait(ask, then).is_err(),
            _ => cx.spawn_future(ask, then).is_err(),
        };
        self.done.fetch_add(u64::from(refused), SeqCst);
        if n % 512 == 511 { Err(Failure::msg("drops its futures")) } else { Ok(Next::Stay) }
    }
}

#[test]
fn futures_and_senders_that_wait_for_room_all_get_through_or_are_given_back() {
    const EACH: u64 = 3_000;
    let runtime = start();
    let alive = Arc::new(AtomicI64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let server = Props::from_fn(answer).mailbox(Mailbox::bounded(4));
    let server = runtime.spawn("server", server).expect("room");
    let to = Arc::clone(&done);
    let client = Props::new(move || Client { server: server.clone(), done: Arc::clone(&to) });
    let client = client.mailbox(Mailbox::bounded(2)).supervise(Strategy::restart());
    let client = runtime.spawn("client", client).expect("room");
    by_threads(|random| {
        for n in 0..EACH {
            let sending = client.send((n, Token::new(&alive)));
            if random.below(4) > 0 {
                assert!(runtime.block_on(sending).is_ok());
            } else {
                drop(sending);
            }
        }
    });
    eventually("the futures are polled", || done.load(SeqCst) > EACH / 2);
    drop(client);
    end(runtime, &alive);
}

#[test]
fn senders_and_asks_that_wait_are_told_of_the_end() {
    let runtime = start();
    let alive = Arc::new(AtomicI64::new(0));
    for round in 0..300_u64 {
        let props = Props::from_fn(answer).mailbox(Mailbox::bounded(1));
        let actor = runtime.spawn(&format!("{round}"), props).expect("room");
        thread::scope(|scope| {
            for thread in 0..2 {
                let (runtime, actor, alive) = (&runtime, &actor, &alive);
                scope.spawn(move || {
                    loop {
                        let token = Token::new(alive);
                        let is_over = match thread {
                            0 => {
                                let ask = actor.ask(|to| Question::Now(0, token, to), LONG);
                                runtime.block_on(ask).is_err()
                            }
                            _ => runtime.block_on(actor.send(Question::Say(token))).is_err(),
                        };
                        if is_over {
                            return;
                        }
                    }
                });
            }
            for _ in 0..round % 40 {
                thread::yield_now();
            }
            runtime.system().stop(&actor).expect("it is below `/user`");
        });
    }
    end(runtime, &alive);
}

/// Watches what it is notified of, and sometimes changes its mind.
struct Fickle {
    told: Arc<AtomicU64>,
}

impl Actor for Fickle {
    type Msg = (u64, ActorRef<(u8, Token)>);

    fn receive(
        &mut self,
        cx: &mut Context<'_, Self>,
        (n, who): (u64, ActorRef<(u8, Token)>),
    ) -> Result<Next, Failure> {
        cx.watch(&who)?;
        if n % 3 == 0 {
            cx.unwatch(&who);
        }
        if n % 64 == 63 { Err(Failure::msg("forgets whom it watches")) } else { Ok(Next::Stay) }
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.told.fetch_add(u64::from(matches!(signal, Signal::Terminated(_))), SeqCst);
        Ok(Next::Stay)
    }
}

#[test]
fn watched_actors_with_priorities_that_stop_under_fire_leave_nothing() {
    const EACH: u64 = 500;
    let runtime = start();
    let alive = Arc::new(AtomicI64::new(0));
    let told = Arc::new(AtomicU64::new(0));
    let to = Arc::clone(&told);
    let fickle = Props::new(move || Fickle { told: Arc::clone(&to) });
    let fickle = fickle.mailbox(Mailbox::unbounded()).supervise(Strategy::restart());
    let fickle = runtime.spawn("fickle", fickle).expect("room");
    let names = AtomicU64::new(0);
    by_threads(|random| {
        for n in 0..EACH {
            let props = Props::from_fn(|_: &mut Context<'_, _>, (kind, _): (u8, Token)| {
                Ok(if kind == 0 { Next::Stop } else { Next::Stay })
            });
            let props = props.mailbox(Mailbox::bounded(8)).priority(|msg| msg.0);
            let name = format!("{}", names.fetch_add(1, SeqCst));
            let actor = runtime.spawn(&name, props).expect("room");
            fickle.tell((n, actor.clone())).expect("it is restarted");
            thread::scope(|scope| {
                scope.spawn(|| {
                    for kind in [3, 1, 0, 2] {
                        drop(actor.tell((kind, Token::new(&alive))));
                    }
                });
                for _ in 0..random.below(6) {
                    let kind = u8::try_from(1 + random.below(3)).expect("small");
                    drop(actor.tell((kind, Token::new(&alive))));
                }
                drop(fickle.tell((n + 1, actor.clone())));
            });
            if random.below(2) == 0 {
                drop(runtime.system().stop(&actor));
            }
        }
    });
    eventually("some ends are told", || told.load(SeqCst) > 0);
    drop(fickle);
    end(runtime, &alive);
}

/// Takes whatever it gets.
struct Sink;

impl Actor for Sink {
    type Msg = Token;

    fn receive(&mut self, _: &mut Context<'_, Self>, _: Token) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

#[test]
fn routers_and_services_that_change_under_fire_keep_no_message() {
    const EACH: u64 = 3_000;
    let runtime = start();
    let alive = Arc::new(AtomicI64::new(0));
    let key = ServiceKey::<Token>::new("service");
    let pool = Pool::round_robin(3, || Sink);
    let resize = pool.handle();
    let router = runtime.spawn("router", pool.mailbox(Mailbox::unbounded())).expect("room");
    let names = AtomicU64::new(0);
    by_threads(|random| {
        for _ in 0..EACH {
            match random.below(32) {
                0 => {
                    let n = usize::try_from(1 + random.below(5)).expect("few");
                    resize.resize(n).expect("room");
                }
                1 => {
                    let name = format!("s{}", names.fetch_add(1, SeqCst));
                    let props = Props::from_fn(|_: &mut Context<'_, _>, _: Token| Ok(Next::Stop));
                    let actor = runtime.spawn(&name, props).expect("room");
                    drop(runtime.system().receptionist().register(&key, &actor));
                }
                2 => {
                    for service in runtime.system().receptionist().find(&key).services() {
                        drop(service.tell(Token::new(&alive)));
                    }
                }
                _ => router.tell(Token::new(&alive)).expect("it runs"),
            }
        }
    });
    drop(router);
    end(runtime, &alive);
}

#[test]
fn a_system_that_ends_under_fire_leaves_no_message() {
    for round in 0..100 {
        let runtime = start();
        let alive = Arc::new(AtomicI64::new(0));
        let fired = Arc::new(AtomicU64::new(0));
        let (to, at) = (Arc::clone(&alive), Arc::clone(&fired));
        let timed = Props::new(move || Timed {
            random: Random::new(round),
            alive: Arc::clone(&to),
            fired: Arc::clone(&at),
        });
        let timed = timed.mailbox(Mailbox::bounded(64)).supervise(Strategy::restart());
        let timed = runtime.spawn("timed", timed).expect("room");
        let server = runtime.spawn("server", Props::from_fn(answer)).expect("room");
        thread::scope(|scope| {
            for _ in 0..2 {
                let (timed, server, alive) = (&timed, &server, &alive);
                scope.spawn(move || {
                    while !timed.is_stopped() || !server.is_stopped() {
                        drop(timed.tell(Beat::Poke(Token::new(alive))));
                        let token = Token::new(alive);
                        drop(server.ask(|to| Question::Now(0, token, to), LONG));
                    }
                });
            }
            for _ in 0..round % 30 {
                thread::yield_now();
            }
            let report = runtime.shutdown_in_time(LONG);
            assert!(report.is_clean(), "round {round}: {report:?}");
        });
        drop((timed, server));
        eventually("no message is left", || alive.load(SeqCst) == 0);
    }
}
