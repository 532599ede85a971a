//! A node that reads a log and packs which are not trusted.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use clockjack_actor::{Actor, Context, Failure, Next, ReplyTo, ServiceKey};
use clockjack_macros::Wire;
use clockjack_net::{
    Address, LogEvent, Member, Net, NetConfig,
    engine::{Connect, Engine, EngineEvent, LogWrite, Moment, Notify},
    wire::{
        Wire as _,
        frame::{EndCause, Frame, Message, begin_pack, push_frame},
    },
};
use clockjack_testkit::ManualTime;

use crate::input::Input;

/// The other nodes.
const PEERS: u64 = 3;
const STEPS_MAX: usize = 64;
/// What a step reads at most.
const BYTES_MAX: usize = 40;

/// A node that reads every entry of a log, and one that reads a snapshot of it, have the same
/// members; keys and values that are none of ours count for nobody.
pub fn log_record(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut entries = Vec::new();
    let mut last: BTreeMap<String, LogEvent> = BTreeMap::new();
    while !input.is_empty() && entries.len() < STEPS_MAX {
        let sequence = entries.len() as u64 + 1;
        let key = key(&mut input);
        let value = (input.below(4) != 0).then(|| value(&mut input));
        let entry = LogEvent { sequence, key, value };
        match entry.value {
            Some(_) => last.insert(entry.key.clone(), entry.clone()),
            None => last.remove(&entry.key),
        };
        entries.push(entry);
    }
    let sequence = entries.len() as u64;
    let mut snapshot: Vec<LogEvent> = last.into_values().collect();
    snapshot.sort_by_key(|entry| entry.sequence);
    let all = members_of(entries.into_iter().map(EngineEvent::Log).collect());
    let some = members_of(vec![EngineEvent::Snapshot { sequence, entries: snapshot }]);
    assert_eq!(all, some, "after {sequence} entries");
    assert!(all.iter().all(|member| !member.node.name().is_empty()));
}

/// The members that a node has read.
fn members_of(events: Vec<EngineEvent>) -> Vec<Member> {
    let node = Node::start();
    node.happen(events);
    node.time.expect_no_failures();
    let members = node.net.members();
    members.members
}

/// Anything that an engine may report, in any order, harms no local actor, and costs no more memory
/// than it has bytes.
pub fn core_inputs(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let node = Node::start();
    let counter = node.time.spawn("counter", Counter::default);
    let key = ServiceKey::new("counters");
    node.net.share(&key).expect("it is the first").forever();
    node.net.export("counter", &counter).expect("it runs");
    node.time.system().receptionist().register(&key, &counter).expect("it runs");
    node.accept_writes();
    for peer in 1..=PEERS {
        node.log(live(peer), Some(member_value("peer")));
    }
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        step(&node, &mut input);
    }
    node.time.settle();
    node.time.expect_no_failures();
    let n_actors = node.time.system().tree().len();
    assert!(n_actors <= 40 + 2 * STEPS_MAX, "{n_actors} actors");
    // The log may also revive incarnations of this node that it has ended.
    let n_links = node.net.metrics().links;
    assert!(n_links <= PEERS + STEPS_MAX as u64, "{n_links} links");
    // The counter may have been told numbers, and not more.
    counter.tell(Msg::Add(0)).expect("it runs, and has room");
    let sum = node.time.block_on(counter.ask(Msg::Sum, Duration::from_secs(1)));
    assert!(sum.is_ok(), "{sum:?}");
}

fn step(node: &Node, input: &mut Input<'_>) {
    let peer = 1 + input.below(PEERS as usize) as u64;
    match input.below(10) {
        0 => node.time.advance(Duration::from_millis(u64::from(input.byte()) * 100)),
        1 => node.accept_writes(),
        2 => {
            let key = key(input);
            let value = (input.below(4) != 0).then(|| value(input));
            node.log(key, value);
        }
        3 => node.happen(vec![EngineEvent::Disconnected]),
        4 => {
            let sequence = node.sequence() + u64::from(input.byte());
            let entries = (1..=peer).map(|peer| LogEvent {
                sequence,
                key: live(peer),
                value: Some(member_value("peer")),
            });
            let entries = entries.collect();
            node.script.state().sequence = sequence;
            let snapshot = EngineEvent::Snapshot { sequence, entries };
            node.happen(vec![EngineEvent::Reconnected, snapshot]);
        }
        5 => {
            let mut pack = begin_pack(peer, node.net.me().incarnation());
            pack.extend(some_bytes(input));
            node.happen(vec![EngineEvent::Pack(pack)]);
        }
        6 => node.happen(vec![EngineEvent::Pack(some_bytes(input))]),
        7 => {
            let event = match input.below(3) {
                0 => EngineEvent::NoResponders(peer),
                1 => EngineEvent::Dropped(input.number()),
                _ => {
                    node.script.state().sequence = 0;
                    EngineEvent::LogReplaced
                }
            };
            node.happen(vec![event]);
        }
        8 => {
            let address = format!("fuzz.Msg/{}/peer@{peer:016x}", input.byte());
            let address: Address<Msg> = address.parse().expect("it is an address");
            if let Ok(remote) = node.net.actor(&address) {
                // It may be full.
                drop(remote.tell(Msg::Add(1)));
                node.time.settle();
            }
        }
        _ => {
            let body = some_bytes(input);
            let mut pack = begin_pack(peer, node.net.me().incarnation());
            for _ in 0..=input.below(4) {
                let frame = frame(input, &body);
                push_frame(&mut pack, &frame).expect("it is small");
            }
            node.happen(vec![EngineEvent::Pack(pack)]);
        }
    }
}

/// A frame, whose numbers are often those of something that there is.
fn frame<'b>(input: &mut Input<'_>, body: &'b [u8]) -> Frame<'b> {
    let channel = input.below(4) as u64;
    let number = if input.below(2) == 0 { input.below(8) as u64 } else { input.number() };
    let type_hash = if input.below(4) == 0 { number } else { Msg::ID.hash() };
    let request = input.below(3) as u64;
    match input.below(13) {
        0 | 1 => Frame::Message(Message {
            channel,
            number,
            request,
            type_hash,
            version: 1 + u16::from(input.byte() / 250),
            time_left_ms: (input.below(4) == 0).then(|| input.number()),
            trace: None,
            body,
        }),
        2 => Frame::Open { channel, export: number, type_hash, version: 1 },
        3 => Frame::Grant { channel, limit: number, received: input.number() },
        4 => Frame::Query { channel, sent: number },
        5 => Frame::End { channel, cause: EndCause::Stopped },
        6 => Frame::Close { channel },
        7 => Frame::Answer { channel, request, body: Some(body) },
        8 => Frame::Find { request, type_hash, name: "counter" },
        9 => Frame::Found { request, export: number },
        10 => Frame::LinkQuery { sent: number },
        11 => Frame::LinkGrant { limit: number, received: input.number() },
        _ => Frame::Forget { channel, request },
    }
}

fn live(incarnation: u64) -> String {
    format!("live.{incarnation:016x}")
}

/// A key of a member, of a service, or something else.
fn key(input: &mut Input<'_>) -> String {
    let peer = 1 + input.below(PEERS as usize) as u64;
    match input.below(4) {
        0 => String::from_utf8_lossy(&some_bytes(input)).into_owned(),
        1 => {
            let export = input.byte();
            format!("reg.counters.{:016x}.{peer:016x}.{export}", Msg::ID.hash())
        }
        _ => live(peer),
    }
}

/// The value of a member, changed in one byte, or something else.
fn value(input: &mut Input<'_>) -> Vec<u8> {
    let mut value = match input.below(4) {
        0 => return some_bytes(input),
        1 => member_value("another"),
        _ => member_value("peer"),
    };
    if input.below(4) == 0 {
        let at = input.below(value.len());
        value[at] = input.byte();
    }
    value
}

/// A name, no roles, and no beginning.
fn member_value(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("the name is short");
    [&[length], name.as_bytes(), &[0, 0]].concat()
}

fn some_bytes(input: &mut Input<'_>) -> Vec<u8> {
    let n = input.below(BYTES_MAX);
    (0..n).map(|_| input.byte()).collect()
}

#[derive(Wire)]
#[wire(id = "fuzz.Msg")]
enum Msg {
    Add(u64),
    Sum(ReplyTo<u64>),
}

#[derive(Default)]
struct Counter(u64);

impl Actor for Counter {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Add(n) => self.0 = self.0.wrapping_add(n),
            Msg::Sum(to) => to.reply(self.0),
        }
        Ok(Next::Stay)
    }
}

/// A node in virtual time, whose engine reports what the input says.
struct Node {
    time: ManualTime,
    net: Net,
    script: Script,
}

impl Node {
    fn start() -> Self {
        let (time, script) = (ManualTime::start(), Script::default());
        let net = Net::join(time.system(), script.clone(), NetConfig::new("fuzz"));
        let net = net.expect("the system has no net");
        time.settle();
        Self { time, net, script }
    }

    fn happen(&self, events: Vec<EngineEvent>) {
        let notify = {
            let mut state = self.script.state();
            state.events.extend(events);
            state.notify.clone()
        };
        notify.iter().for_each(Notify::notify);
        self.time.settle();
    }

    fn sequence(&self) -> u64 {
        self.script.state().sequence
    }

    /// The next entry of the log.
    fn log(&self, key: String, value: Option<Vec<u8>>) {
        let sequence = {
            let mut state = self.script.state();
            state.sequence += 1;
            state.sequence
        };
        self.happen(vec![EngineEvent::Log(LogEvent { sequence, key, value })]);
    }

    /// The log gets what the node has written, whatever the conditions are.
    fn accept_writes(&self) {
        let writes = core::mem::take(&mut self.script.state().writes);
        for write in writes {
            self.log(write.key, write.value);
        }
    }
}

#[derive(Clone, Default)]
struct Script(Arc<Mutex<ScriptState>>);

#[derive(Default)]
struct ScriptState {
    notify: Option<Notify>,
    events: VecDeque<EngineEvent>,
    writes: Vec<LogWrite>,
    sequence: u64,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connect for Script {
    fn join_number(&mut self) -> u64 {
        1
    }

    fn connect(self: Box<Self>, notify: Notify) -> Box<dyn Engine> {
        self.state().notify = Some(notify);
        self
    }
}

impl Engine for Script {
    fn subscribe(&mut self, _: u64) {}

    fn publish(&mut self, _: u64, _: Vec<u8>) {}

    fn write(&mut self, _: Moment, write: LogWrite) {
        let mut state = self.state();
        // Those that nobody accepts are forgotten.
        if state.writes.len() < STEPS_MAX {
            state.writes.push(write);
        }
    }

    fn poll(&mut self, _: Moment) -> Vec<EngineEvent> {
        self.state().events.drain(..).collect()
    }
}
