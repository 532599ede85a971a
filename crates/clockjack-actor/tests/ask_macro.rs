//! `#[ask]` against the crate that it writes for.

#[path = "support/bench.rs"]
mod bench;
#[path = "support/pause.rs"]
mod pause;

use core::{fmt, time::Duration};

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, AskError, Context, EventKinds, Failure, Next, Props, ReplyTo,
    Strategy, SystemEvent,
};
use clockjack_macros::actor;
use pause::pause;

const SECOND: Duration = Duration::from_secs(1);

/// There is too little in the account.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLittle {
    has: u64,
}

impl fmt::Display for TooLittle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "only {} left", self.has)
    }
}

impl core::error::Error for TooLittle {}

#[derive(Default)]
struct Account {
    has: u64,
    waiting: Vec<(u64, ReplyTo<u64>)>,
}

#[actor]
impl Account {
    #[msg]
    fn put(&mut self, amount: u64) {
        self.has += amount;
        let Self { has, waiting } = self;
        for (_, reply_to) in waiting.extract_if(.., |(at_least, _)| *at_least <= *has) {
            reply_to.reply(*has);
        }
    }

    #[ask]
    fn has(&self) -> u64 {
        self.has
    }

    #[ask]
    fn take(&mut self, amount: u64) -> Result<u64, TooLittle> {
        self.has = self.has.checked_sub(amount).ok_or(TooLittle { has: self.has })?;
        Ok(self.has)
    }

    #[ask]
    fn checked(&mut self, amount: u64) -> Result<u64, Failure> {
        Ok(self.take(amount)?)
    }

    #[ask]
    fn clear(&mut self) {
        self.has = 0;
    }

    /// Has a parameter of the name that the time-out has.
    #[ask]
    fn later(&self, timeout: u64) -> u64 {
        self.has + timeout
    }

    #[ask]
    fn at_least(&mut self, amount: u64, reply_to: ReplyTo<u64>) {
        if self.has >= amount {
            reply_to.reply(self.has);
        } else {
            self.waiting.push((amount, reply_to));
        }
    }

    #[ask]
    fn never(&mut self, reply_to: ReplyTo<u64>) -> Result<(), Failure> {
        drop(reply_to);
        Err(Failure::msg("it was asked to"))
    }

    #[ask]
    async fn double(&mut self) -> u64 {
        let before = self.has;
        pause().await;
        assert_eq!(self.has, before, "nobody else had the actor");
        self.has *= 2;
        self.has
    }

    #[ask]
    async fn take_slowly(&mut self, amount: u64) -> Result<u64, TooLittle> {
        pause().await;
        self.take(amount)
    }

    #[ask]
    async fn when_paused(&mut self, reply_to: ReplyTo<u64>) {
        pause().await;
        reply_to.reply(self.has);
    }

    #[ask]
    async fn breaks(&mut self) -> u64 {
        pause().await;
        panic!("it was asked to");
    }

    #[ask]
    fn place(&self, cx: &mut Context<'_, Self>, of: &'static str) -> String {
        format!("{}{of}", cx.path())
    }
}

#[test]
fn what_a_method_returns_is_the_answer() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let account = root.spawn("a", Account::default).unwrap();
    account.put(10).unwrap();
    let has = account.has(SECOND);
    assert_eq!(root.block_on(has), Ok(10));
    let later = account.later(3, SECOND);
    assert_eq!(root.block_on(later), Ok(13));
    let place = account.place("!", SECOND);
    assert_eq!(root.block_on(place), Ok("/user/a!".to_owned()));
    let cleared = account.clear(SECOND);
    let has = account.has(SECOND);
    assert_eq!((root.block_on(cleared), root.block_on(has)), (Ok(()), Ok(0)));
}

#[test]
fn a_result_is_answered_as_it_is_and_the_actor_lives_on() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let account = root.spawn("a", Account::default).unwrap();
    account.put(10).unwrap();
    let (fine, too_much) = (account.take(4, SECOND), account.take(7, SECOND));
    assert_eq!(root.block_on(fine), Ok(Ok(6)));
    assert_eq!(root.block_on(too_much), Ok(Err(TooLittle { has: 6 })));
    let slowly = account.take_slowly(7, SECOND);
    assert_eq!(root.block_on(slowly), Ok(Err(TooLittle { has: 6 })));
    // The enum is an ordinary one: it can be asked for a status by hand.
    let checked =
        account.ask_with_status(|reply_to| AccountMsg::Checked { amount: 7, reply_to }, SECOND);
    let failure = root.block_on(checked).unwrap_err();
    assert_eq!(failure.downcast_ref(), Some(&TooLittle { has: 6 }));
}

#[test]
fn an_answer_may_come_later() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let account = root.spawn("a", Account::default).unwrap();
    let (rich, richer) = (account.at_least(5, SECOND), account.at_least(50, SECOND));
    account.put(4).unwrap();
    account.put(4).unwrap();
    assert_eq!(root.block_on(rich), Ok(8));
    clock.advance(SECOND);
    assert!(root.block_on(richer).unwrap_err().is_timed_out());
    let paused = account.when_paused(SECOND);
    assert_eq!(root.block_on(paused), Ok(8));
}

#[test]
fn an_async_ask_has_the_actor_to_itself_until_it_answers() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let account = root.spawn("a", Account::default).unwrap();
    account.put(1).unwrap();
    let first = account.double(SECOND);
    account.put(1).unwrap();
    let second = account.double(SECOND);
    assert_eq!((root.block_on(second), root.block_on(first)), (Ok(6), Ok(2)));
}

#[test]
fn who_asks_learns_at_once_that_there_will_be_no_answer() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::new(Account::default).supervise(Strategy::restart());
    let account = root.spawn("a", props).unwrap();
    let (never, breaks) = (account.never(SECOND), account.breaks(SECOND));
    assert!(root.block_on(never).unwrap_err().is_dropped());
    assert!(root.block_on(breaks).unwrap_err().is_dropped());
    let refused = account.has(Duration::ZERO);
    assert!(root.block_on(refused).unwrap_err().is_refused());
    let has = account.has(SECOND);
    assert_eq!(root.block_on(has), Ok(0), "it was restarted");
    root.system().stop(&account).unwrap();
    root.run_until_idle();
    let error = root.block_on(account.has(SECOND)).unwrap_err();
    assert!(error.is_stopped());
    assert!(error.to_string().contains("AccountMsg"), "{error}");
}

struct Shelf<K, V> {
    items: Vec<(K, V)>,
}

#[actor]
impl<K: PartialEq + Send + 'static, V: Clone + Send + Sync + 'static> Shelf<K, V> {
    #[msg]
    fn put(&mut self, key: K, item: V) {
        self.items.push((key, item));
    }

    #[ask]
    fn get(&self, key: K) -> Option<V> {
        self.items.iter().find(|(known, _)| *known == key).map(|(_, item)| item.clone())
    }

    #[ask]
    async fn take(&mut self, key: K) -> Result<V, K> {
        pause().await;
        match self.items.iter().position(|(known, _)| *known == key) {
            Some(at) => Ok(self.items.remove(at).1),
            None => Err(key),
        }
    }
}

#[test]
fn asks_may_be_generic_by_their_actor() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let shelf = root.spawn("shelf", || Shelf { items: Vec::new() }).unwrap();
    shelf.put("a", String::from("apple")).unwrap();
    let (a, b) = (shelf.get("a", SECOND), shelf.get("b", SECOND));
    assert_eq!(root.block_on(a), Ok(Some("apple".to_owned())));
    assert_eq!(root.block_on(b), Ok(None));
    let (a, again) = (shelf.take("a", SECOND), shelf.take("a", SECOND));
    assert_eq!(root.block_on(a), Ok(Ok("apple".to_owned())));
    assert_eq!(root.block_on(again), Ok(Err("a")));
}

/// Asks others while it is asked.
struct Talker {
    log: Log,
}

#[actor]
impl Talker {
    #[ask]
    fn name(&self, cx: &mut Context<'_, Self>) -> String {
        cx.path().to_string()
    }

    /// Asks each of these in turn, which asks the next.
    #[ask]
    async fn pass(&mut self, mut line: Vec<ActorRef<TalkerMsg>>) -> Result<String, AskError> {
        let Some(next) = line.pop() else { return Ok("done".to_owned()) };
        let answer = next.pass(line, SECOND).await;
        self.log.add(match &answer {
            Ok(Ok(answer)) => answer.clone(),
            Ok(Err(error)) | Err(error) if error.is_to_itself() => "to itself".to_owned(),
            Ok(Err(error)) | Err(error) => error.to_string(),
        });
        answer?
    }

    /// Continues while it waits for its own answer.
    #[msg]
    fn look(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Failure> {
        let itself = cx.self_ref();
        cx.ask(
            &itself,
            |reply_to| TalkerMsg::Name { reply_to },
            SECOND,
            |_, name| Ok(TalkerMsg::Said { name: name? }),
        )?;
        Ok(())
    }

    #[msg]
    fn said(&mut self, name: String) {
        self.log.add(name);
    }
}

struct Listener(Log);

impl Actor for Listener {
    type Msg = SystemEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: SystemEvent) -> Result<Next, Failure> {
        if let SystemEvent::AskCycle(cycle) = event {
            let paths: Vec<_> = cycle.paths.iter().map(ToString::to_string).collect();
            self.0.add(format!("cycle {}", paths.join(" ")));
        }
        Ok(Next::Stay)
    }
}

#[test]
fn an_async_ask_that_asks_its_own_actor_fails_at_once_and_one_that_goes_on_does_not() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let talker = root.spawn("a", move || Talker { log: to.clone() }).unwrap();
    let passed = talker.pass(vec![talker.clone()], SECOND);
    assert!(root.block_on(passed).unwrap().unwrap_err().is_to_itself());
    assert_eq!(log.take(), ["to itself"]);
    talker.look().unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/a"]);
}

#[test]
fn async_asks_in_a_circle_are_told_of() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let listener = root.spawn("listener", move || Listener(to.clone())).unwrap();
    root.system().events().subscribe(EventKinds::ASK_CYCLE, listener);
    let [a, b] = ["a", "b"].map(|name| {
        let log = log.clone();
        root.spawn(name, move || Talker { log: log.clone() }).unwrap()
    });
    let line = a.pass(vec![b.clone()], SECOND);
    assert_eq!(root.block_on(line), Ok(Ok("done".to_owned())));
    assert_eq!(log.take(), ["done"]);
    let circle = a.pass(vec![a.clone(), b], SECOND);
    root.run_until_idle();
    assert_eq!(log.take(), ["cycle /user/a /user/b"]);
    drop(circle);
}
