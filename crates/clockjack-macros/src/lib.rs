//! The attribute [`macro@actor`]: methods become messages of an actor. And the derive
//! [`macro@Component`]: fields become ports and settings of a graph's component.
//!
//! ```
//! # extern crate alloc;
//! # #[path = "../tests/stub/actor.rs"] mod stub;
//! # extern crate self as clockjack_actor;
//! # pub use stub::*;
//! # use core::time::Duration;
//! use clockjack_macros::actor;
//!
//! #[derive(Default)]
//! pub struct Counter {
//!     n: u64,
//! }
//!
//! #[actor]
//! impl Counter {
//!     /// Counts on.
//!     #[msg]
//!     fn inc(&mut self, by: u32) {
//!         self.n += u64::from(by);
//!     }
//!
//!     /// How far it has counted.
//!     #[ask]
//!     fn get(&self) -> u64 {
//!         self.n
//!     }
//! }
//!
//! # fn main() -> Result<(), SendError<CounterMsg>> {
//! # let mut stage = Stage::new(Counter::default());
//! # let counter = stage.target.clone();
//! // `counter` is an `ActorRef<CounterMsg>`.
//! counter.inc(2)?;
//! counter.tell(CounterMsg::Inc { by: 1 })?;
//! let n = counter.get(Duration::from_secs(1));
//! # stage.run();
//! # assert_eq!(n.answer(), Some(3));
//! # Ok(()) }
//! ```
//!
//! # What is written
//!
//! The block stays as it is, without the marks, so the methods can still be called and tested
//! without any actor. Behind it come an enum, `impl Actor` and a trait. For the block above, with
//! the documentation of the methods carried over to their variants and to the trait:
//!
//! ```
//! # extern crate alloc;
//! # #[path = "../tests/stub/actor.rs"] mod stub;
//! # use core::time::Duration;
//! # use stub::{Actor, ActorRef, Ask, Context, Failure, Next, ReplyTo, SendError};
//! # use stub::generated::IntoNext;
//! # pub struct Counter { n: u64 }
//! # impl Counter {
//! #     fn inc(&mut self, by: u32) { self.n += u64::from(by); }
//! #     fn get(&self) -> u64 { self.n }
//! # }
//! pub enum CounterMsg {
//!     Inc { by: u32 },
//!     Get { reply_to: ReplyTo<u64> },
//! }
//!
//! impl Actor for Counter {
//!     type Msg = CounterMsg;
//!
//!     fn receive(
//!         &mut self,
//!         _cx: &mut Context<'_, Self>,
//!         msg: CounterMsg,
//!     ) -> Result<Next, Failure> {
//!         match msg {
//!             CounterMsg::Inc { by } => self.inc(by).into_next(),
//!             CounterMsg::Get { reply_to } => {
//!                 let answer = self.get();
//!                 reply_to.reply(answer);
//!                 Ok(Next::Stay)
//!             }
//!         }
//!     }
//! }
//!
//! pub trait CounterApi {
//!     fn inc(&self, by: u32) -> Result<(), SendError<CounterMsg>>;
//!     fn get(&self, timeout: Duration) -> Ask<u64>;
//! }
//!
//! impl CounterApi for ActorRef<CounterMsg> {
//!     fn inc(&self, by: u32) -> Result<(), SendError<CounterMsg>> {
//!         self.tell(CounterMsg::Inc { by })
//!     }
//!
//!     fn get(&self, timeout: Duration) -> Ask<u64> {
//!         self.ask(|reply_to| CounterMsg::Get { reply_to }, timeout)
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The enum is an ordinary one: it can be told, scheduled and mapped to like one written by hand.
//! It has `Debug`, which shows the variant's name and nothing of what it carries. The trait must be
//! in scope where its methods are called.
//!
//! See [`macro@actor`] for all marks and options, and for what is refused and why.

mod block;
mod component;
mod entry;
mod expand;
mod faults;
mod marks;
mod method;
mod names;
mod options;
mod owned;

use proc_macro::TokenStream;

use crate::options::Home;

/// Makes the methods of an `impl` block the messages of an actor.
///
/// The [crate's documentation](crate) shows what is written behind the block.
///
/// # Marks
///
/// * `#[msg] fn set_limit(&mut self, n: u32)` is the variant `SetLimit { n: u32 }`, sent by
///   `set_limit(n)` of the trait. With `#[control]` beside it the trait uses the control lane,
///   `tell_control`.
/// * `#[msg] async fn save(&mut self)` is handled by `cx.wait_mut`: the future borrows the actor
///   until it is done.
/// * `#[ask] fn get(&self, key: Key) -> R` is the variant `Get { key: Key, reply_to: ReplyTo<R> }`,
///   sent by `get(key, timeout)`, which gives an `Ask<R>`. `R` may be a `Result`, which is answered
///   as it is, or nothing.
/// * `#[ask] async fn get(&mut self) -> R` answers when its future is done.
/// * `#[ask] fn get(&mut self, reply_to: ReplyTo<R>)` keeps `reply_to` and answers later.
/// * `#[started] fn any_name(&mut self)` is called by `Actor::started`.
/// * `#[signal] fn any_name(&mut self, signal: Signal)` is called by `Actor::signal`.
///
/// Right behind `self` each but the `async` ones may take `cx: &mut Context<'_, Self>`. It is known
/// by its type or, if that is an alias, by the name `cx` or `_cx`.
///
/// A method whose return value is not an answer returns what the actor does next: nothing, `Next`,
/// `Result<(), Failure>` or `Result<Next, Failure>`.
///
/// Methods without a mark are none of the attribute's business. `#[cfg(..)]` on a method holds for
/// its variant too, and `#[deprecated]` for its sending. Parameters of the block, `impl<T: Send +
/// 'static> Cache<T>`, are parameters of the enum and of the trait, with the same bounds; if no
/// message mentions one of them, the enum gets a hidden variant that cannot exist.
///
/// # Options
///
/// * `crate = ::clockjack::actor`: where `Actor`, `Context` and the others are found, instead of
///   `::clockjack_actor`.
/// * `msg = "Command"`: the name of the enum, instead of `CounterMsg`.
/// * `api = "Commands"`: the name of the trait, instead of `CounterApi`.
/// * `vis = "pub(crate)"`: who sees both, instead of `pub`; `""` is private. An attribute cannot
///   see whether the actor is public. If the compiler says that a type is more private than the
///   message which carries it, this is what to set.
///
/// # What is refused
///
/// All faults of a block are shown at once, each where it is.
///
/// * *A message must own what it carries*, and so must an answer: both outlive the call. Take
///   `String` for `&str`, `Vec<u8>` for `&[u8]`; `&'static str` is free. An actor, too, has no
///   lifetime parameters.
/// * *A message has one type*: no `impl Trait`, no generic methods, no `where` on a method.
/// * *A parameter needs a plain name*, since it becomes a field: no patterns, no `_`.
/// * *Take `&mut self` or `&self`*: a message cannot move the actor, and a function without `self`
///   cannot reach it.
/// * *A method has one role*, a mark stands on methods only and takes no brackets, `#[control]`
///   stands beside `#[msg]`, and there is one `#[started]` and one `#[signal]` at most.
/// * *`unsafe`, `extern` and `const fn`* cannot be called by a message.
/// * *Two methods would both be one variant*, or a name gives none (`__`, `_1`, `self_`): rename.
/// * *`ActorRef` has a method of its own of this name* (`send`, `tell`, `path`, ..): calls would
///   reach that one and never the message.
/// * *The context comes right after `self`*, lent and once. An `async` method gets none, because
///   the actor is borrowed while it waits.
/// * *A hook cannot be `async`*: call `cx.wait` or `cx.spawn` in it.
/// * *`reply_to` is where the answer goes*: in an `#[ask]` no other parameter has this name, and
///   the `ReplyTo` no other.
/// * *What `#[msg]` returns is what the actor does next*: for an answer write `#[ask]`.
/// * *This actor has no message*: write `impl Actor` by hand for one that only has hooks.
/// * *The attribute stands on the block with the actor's methods*: on nothing else, and on no
///   implementation of a trait.
#[proc_macro_attribute]
pub fn actor(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::actor(options.into(), item.into(), Home::Actor).into()
}

/// [`macro@actor`] for those who depend on the facade `clockjack` alone, which gives it as `actor`:
/// `Actor` and the others are found at `::clockjack::actor`. All else is the same.
#[proc_macro_attribute]
pub fn facade_actor(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::actor(options.into(), item.into(), Home::Facade).into()
}

/// Declares a struct as a component of a graph: its fields are its ports and settings.
///
/// ```ignore
/// #[derive(Component, Default)]
/// #[component(type = "gain")]
/// struct Gain {
///     #[input]
///     x: Input<f64>,
///     #[output]
///     y: Output<f64>,
///     #[config(default = 1.0)]
///     k: f64,
///     calls: u64,
/// }
/// ```
///
/// writes, and nothing else:
///
/// ```ignore
/// impl Gain {
///     const X: InputPort<f64> = InputPort::new("x");
///     const Y: OutputPort<f64> = OutputPort::new("y");
/// }
///
/// impl Component for Gain {
///     const TYPE: &'static str = "gain";
///
///     fn describe() -> Descriptor {
///         Descriptor::new(Self::TYPE)
///             .input(Self::X, Need::Required)
///             .output(Self::Y)
///             .config(ConfigField::new("k", ConfigKind::Float))
///     }
///
///     fn bind(&mut self, ports: &mut Binder<'_>) {
///         self.x = ports.input(Self::X);
///         self.y = ports.output(Self::Y);
///     }
///
///     fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
///         self.k = config.get("k")?.unwrap_or(1.0);
///         Ok(())
///     }
/// }
/// ```
///
/// What the component does is `impl Execute`, written by hand. A field without a mark is state. The
/// constants are as visible as the struct; `a.out(Gain::Y)` names a port when a graph is built in
/// code.
///
/// # Options of the struct, in `#[component(..)]`
///
/// * `type = "gain"`: what files call it. It must be given.
/// * `title = "Gain"`: a name for people, instead of the type.
/// * `role = "input"`, `"output"` or `"input_output"`: it stands at the border of the graph.
/// * `open_config`: settings that are not declared are let through.
/// * `crate = ::clockjack::graph`: where `Component` and the others are found, instead of
///   `::clockjack_graph`.
///
/// # Marks of the fields
///
/// * `#[input] x: Input<T>`; with `(optional)` it may be left unconnected, with `(multiple)` any
///   number of edges may end there.
/// * `#[output] y: Output<T>`.
/// * `#[config] k: f64`: a setting that must be given. With `(default = 1.0)` it need not be, nor
///   with `(default)`, which takes that of its type; an `Option<f64>` is `None` then.
/// * `#[config(min = 0.0, max = 1.0)]` and `#[config(one_of("sine", "saw"))]` refuse other values,
///   both when a file is checked and when the component is configured. If one setting is refused,
///   none is taken.
///
/// Ports and settings are called like their fields; `r#in` is called `in`.
///
/// # What is refused
///
/// * *A component is a struct with named fields*, and owns what it has.
/// * *A port that is never bound*: a field of type `Input` or `Output` without its mark.
/// * *A field has one role*, and a port is no setting.
/// * *Bounds that contradict each other*, the default, or the type of the setting.
/// * *An option that does not exist*, or is given twice.
#[proc_macro_derive(Component, attributes(component, input, output, config))]
pub fn component(item: TokenStream) -> TokenStream {
    component::component(item.into(), component::Home::Graph).into()
}

/// [`macro@Component`] for those who depend on the facade `clockjack` alone, which gives it as
/// `Component`: all that it names is found at `::clockjack::graph`. All else is the same.
#[proc_macro_derive(FacadeComponent, attributes(component, input, output, config))]
pub fn facade_component(item: TokenStream) -> TokenStream {
    component::component(item.into(), component::Home::Facade).into()
}
