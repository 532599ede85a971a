//! The actors of a simulated node.

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, Context, Failure, Next, ReplyTo, Signal, SystemEvent, Terminated,
    TerminationCause,
};
use clockjack_net::{
    NetEvent,
    wire::{AskFor, DecodeError, Decoded, Decoder, EncodeError, Encoder, Field as _, Wire, WireId},
};

use super::oracle::Oracle;

/// A message to a target on another node.
pub(crate) enum Msg {
    /// A numbered message of a stream. The target takes so many milliseconds.
    Tell {
        stream: u64,
        number: u64,
        slow: u64,
        filling: Vec<u8>,
    },
    /// A request with its number, which is also the answer.
    Ask {
        stream: u64,
        request: u64,
        slow: u64,
        filling: Vec<u8>,
        to: ReplyTo<u64>,
    },
    Stop,
}

impl Wire for Msg {
    const ID: WireId = WireId::new("sim.Msg");

    fn encode(self, out: &mut Encoder<'_>) -> Result<(), EncodeError<Self>> {
        let (kind, numbers, filling) = match self {
            Self::Tell { stream, number, slow, filling } => {
                (0_u64, [stream, number, slow], filling)
            }
            Self::Ask { stream, request, slow, filling, to } => {
                out.reply_to(to);
                (1, [stream, request, slow], filling)
            }
            Self::Stop => (2, [0; 3], Vec::new()),
        };
        let written = (kind, numbers).write(out).and_then(|()| filling.write(out));
        written.map_err(|error| error.with(Self::Stop))
    }

    fn decode(_version: u16, from: &mut Decoder<'_>) -> Result<Decoded<Self>, DecodeError> {
        let (kind, [stream, number, slow]) = <(u64, [u64; 3])>::read(from)?;
        let filling = Vec::read(from)?;
        Ok(match kind {
            0 => Decoded::Tell(Self::Tell { stream, number, slow, filling }),
            1 => Decoded::Ask(AskFor::new(move |to| Self::Ask {
                stream,
                request: number,
                slow,
                filling,
                to,
            })),
            _ => Decoded::Tell(Self::Stop),
        })
    }
}

/// Handles messages, some of them slowly, and reports each one.
pub(crate) struct Target {
    pub(crate) oracle: Oracle,
    /// Its number among all targets.
    pub(crate) target: u64,
}

impl Actor for Target {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let slow = match msg {
            Msg::Tell { stream, number, slow, .. } => {
                self.oracle.delivered(self.target, stream, number);
                slow
            }
            Msg::Ask { stream, request, slow, to, .. } => {
                self.oracle.handled(self.target, stream, request);
                to.reply(request);
                slow
            }
            Msg::Stop => return Ok(Next::Stop),
        };
        if slow > 0 {
            let sleep = cx.system().executor().sleep(Duration::from_millis(slow));
            cx.wait(sleep, |_: &mut Self, _: &mut Context<'_, Self>, _| {})?;
        }
        Ok(Next::Stay)
    }
}

/// Watches the remote proxy of a stream.
pub(crate) struct Watcher {
    pub(crate) oracle: Oracle,
    pub(crate) stream: u64,
    pub(crate) remote: ActorRef<Msg>,
}

impl Actor for Watcher {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.watch(&self.remote)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let Signal::Terminated(end) = signal else { return Ok(Next::Unhandled) };
        let end: Terminated = end;
        let cause: TerminationCause = end.cause();
        self.oracle.terminated(self.stream, cause);
        Ok(Next::Stay)
    }
}

/// Checks that no actor of its node fails.
pub(crate) struct Failures(pub(crate) Oracle);

impl Actor for Failures {
    type Msg = SystemEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: SystemEvent) -> Result<Next, Failure> {
        if let SystemEvent::Failure(info) = event {
            self.0.failed(&info);
        }
        Ok(Next::Stay)
    }
}

/// Counts the gaps that its node reports.
pub(crate) struct Listener {
    pub(crate) oracle: Oracle,
    pub(crate) node: usize,
}

impl Actor for Listener {
    type Msg = NetEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: NetEvent) -> Result<Next, Failure> {
        match event {
            NetEvent::Gap { from, n } => self.oracle.gap(self.node, from.incarnation(), n),
            NetEvent::Muted(node) => self.oracle.muted(self.node, node.incarnation()),
            _ => {}
        }
        Ok(Next::Stay)
    }
}
