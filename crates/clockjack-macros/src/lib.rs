//! The attribute [`macro@actor`], which turns methods into messages of an actor, and the derives
//! [`macro@Component`], which turns fields into ports and settings of a graph component, and
//! [`macro@Wire`], with which a message travels between nodes.
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
//!     /// Adds to the count.
//!     #[msg]
//!     fn inc(&mut self, by: u32) {
//!         self.n += u64::from(by);
//!     }
//!
//!     /// Returns the count.
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
//! # Generated code
//!
//! The block stays as it is, without the marker attributes, so the methods can still be called and
//! tested without an actor. The macro adds an enum, `impl Actor` and a trait. For the block above
//! it generates the following code; the documentation of the methods is copied to their variants
//! and to the trait:
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
//! The enum is an ordinary enum: it can be sent, scheduled and mapped like a hand-written one. Its
//! `Debug` output is the name of the variant, without the fields. The trait must be in scope where
//! its methods are called.
//!
//! See [`macro@actor`] for all marker attributes and options, and for the errors and their reasons.

mod actor;
mod component;
mod data;
mod errors;
mod wire;

use proc_macro::TokenStream;

use crate::actor::RootCrate;

/// Turns the methods of an `impl` block into the messages of an actor.
///
/// The [crate documentation](crate) shows the generated code.
///
/// # Marker attributes
///
/// * `#[msg] fn set_limit(&mut self, n: u32)` becomes the variant `SetLimit { n: u32 }`, which the
///   method `set_limit(n)` of the trait sends. With an additional `#[control]`, the trait sends it
///   as a control message, with `tell_control`.
/// * `#[msg] async fn save(&mut self)` runs in `cx.wait_mut`: the future borrows the actor until it
///   completes.
/// * `#[ask] fn get(&self, key: Key) -> R` becomes the variant `Get { key: Key, reply_to:
///   ReplyTo<R> }`, which `get(key, timeout)` sends; that method returns an `Ask<R>`. `R` may be a
///   `Result`, which is sent as the answer unchanged, or `()`.
/// * `#[ask] async fn get(&mut self) -> R` answers when its future completes.
/// * `#[ask] fn get(&mut self, reply_to: ReplyTo<R>)` keeps `reply_to` and answers later.
/// * `#[started] fn any_name(&mut self)` is called by `Actor::started`.
/// * `#[signal] fn any_name(&mut self, signal: Signal)` is called by `Actor::signal`.
///
/// Except for `async` methods, each method may take `cx: &mut Context<'_, Self>` as the first
/// parameter after `self`. The macro recognizes it by its type or, for a type alias, by the name
/// `cx` or `_cx`.
///
/// A method whose return value is not an answer returns what the actor does next: nothing, `Next`,
/// `Result<(), Failure>` or `Result<Next, Failure>`.
///
/// The macro ignores methods without a marker attribute. `#[cfg(..)]` on a method applies to its
/// variant, too, and `#[deprecated]` to the method of the trait. Generic parameters of the block,
/// `impl<T: Send + 'static> Cache<T>`, become parameters of the enum and of the trait, with the
/// same bounds; if no message mentions a parameter, the enum gets a hidden uninhabited variant.
///
/// # Options
///
/// * `crate = ::clockjack::actor`: the path of `Actor`, `Context` and so on, instead of
///   `::clockjack_actor`.
/// * `msg = "Command"`: the name of the enum, instead of `CounterMsg`.
/// * `api = "Commands"`: the name of the trait, instead of `CounterApi`.
/// * `vis = "pub(crate)"`: the visibility of both, instead of `pub`; `""` is private. An attribute
///   cannot see whether the actor is public. If the compiler reports that a type is more private
///   than the message that contains it, set this option.
/// * `local`: messages and answers need not be `Send`, for an actor that is only started on its
///   thread, for example by `Context::spawn_local_child`.
///
/// # Errors
///
/// All errors of a block are reported at once, each at its position.
///
/// * *A message must own its data*, and so must an answer: both outlive the call. Take `String`
///   instead of `&str`, `Vec<u8>` instead of `&[u8]`; `&'static str` is allowed. An actor cannot
///   have lifetime parameters either.
/// * *A message moves to another thread*, and so does an answer: take `Arc<T>` instead of `Rc<T>`,
///   or set the option `local`. Of other types that are not `Send`, the compiler says why at the
///   parameter, and once more where the actor is spawned. What depends on a type parameter is
///   checked only there.
/// * *A message must have a concrete type*: no `impl Trait`, no generic methods, no `where` clause
///   on a method.
/// * *A parameter needs a plain name*, since it becomes a field: no patterns, no `_`.
/// * *Take `&mut self` or `&self`*: a message cannot move the actor, and a function without `self`
///   cannot access it.
/// * *A method can have only one role*. A marker attribute is allowed only on methods and takes no
///   arguments, `#[control]` requires `#[msg]`, and there is at most one `#[started]` and one
///   `#[signal]`.
/// * *`unsafe`, `extern` and `const` functions* cannot handle a message.
/// * *Two methods would both become the same variant*, or a name cannot be converted into a variant
///   (`__`, `_1`, `self_`): rename the method.
/// * *`ActorRef` already has a method of this name* (`send`, `tell`, `path`, ..): calls would reach
///   that method and never send the message.
/// * *The context must come right after `self`*, by reference and only once. An `async` method
///   cannot take it, because the actor is borrowed while the method waits.
/// * *A hook cannot be `async`*: call `cx.wait` or `cx.spawn_future` in its body.
/// * *The answer is sent through `reply_to`*: in an `#[ask]`, the parameter `reply_to` must be a
///   `ReplyTo`, and a `ReplyTo` must be named `reply_to`.
/// * *A `#[msg]` method returns what the actor does next*: for an answer, use `#[ask]`.
/// * *This actor has no message*: write `impl Actor` by hand for an actor that only has hooks.
/// * *Put `#[actor]` on the block with the actor's methods*: not on anything else, and not on the
///   implementation of a trait.
#[proc_macro_attribute]
pub fn actor(options: TokenStream, item: TokenStream) -> TokenStream {
    actor::actor(options.into(), item.into(), RootCrate::Actor).into()
}

/// [`macro@actor`] for crates that depend only on the facade `clockjack`, which re-exports it as
/// `actor`. It uses the path `::clockjack::actor`; everything else is the same.
#[proc_macro_attribute]
pub fn facade_actor(options: TokenStream, item: TokenStream) -> TokenStream {
    actor::actor(options.into(), item.into(), RootCrate::Facade).into()
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
/// generates the following code, and nothing else:
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
/// The behaviour of the component is `impl Execute`, written by hand. A field without a marker
/// attribute is state. The constants have the visibility of the struct; `a.out(Gain::Y)` refers to
/// a port when a graph is built in code.
///
/// # Options of the struct, in `#[component(..)]`
///
/// * `type = "gain"`: the name of the component type in graph files. Required.
/// * `title = "Gain"`: a display name, instead of the type.
/// * `role = "input"`, `"output"` or `"input_output"`: values enter or leave the graph here.
/// * `open_config`: accept settings that are not declared.
/// * `crate = ::clockjack::graph`: the path of `Component` and so on, instead of
///   `::clockjack_graph`.
///
/// # Marker attributes of the fields
///
/// * `#[input] x: Input<T>`; with `(optional)` it may be unconnected, with `(multiple)` any number
///   of edges may be connected.
/// * `#[output] y: Output<T>`.
/// * `#[config] k: f64`: a required setting. With `(default = 1.0)` it is optional; with
///   `(default)` its default is that of its type; an `Option<f64>` is `None` if it is missing.
/// * `#[config(min = 0.0, max = 1.0)]` and `#[config(one_of("sine", "saw"))]` reject other values,
///   both when a file is checked and when the component is configured. If one setting is rejected,
///   no setting is changed.
///
/// Ports and settings are named after their fields; `r#in` is named `in`.
///
/// # Errors
///
/// * *A component must be a struct with named fields* that owns its data.
/// * *A port is never bound*: a field of type `Input` or `Output` without its marker attribute.
/// * *A field can have only one role*, and a port is not a setting.
/// * *Bounds contradict* each other, the default, or the type of the setting.
/// * *An option is unknown*, or occurs twice.
#[proc_macro_derive(Component, attributes(component, input, output, config))]
pub fn component(item: TokenStream) -> TokenStream {
    component::component(item.into(), component::RootCrate::Graph).into()
}

/// [`macro@Component`] for crates that depend only on the facade `clockjack`, which re-exports it
/// as `Component`. It uses the path `::clockjack::graph`; everything else is the same.
#[proc_macro_derive(FacadeComponent, attributes(component, input, output, config))]
pub fn facade_component(item: TokenStream) -> TokenStream {
    component::component(item.into(), component::RootCrate::Facade).into()
}

/// Makes a struct or an enum whose fields are payloads of a graph a payload itself.
///
/// ```ignore
/// #[derive(Data)]
/// #[data(schema = "track")]
/// struct Track {
///     id: u32,
///     position: Vec<f64>,
/// }
/// ```
///
/// The encoding has the fields in their order, each behind its length; an enum begins with the
/// number of its variant, from zero. Numbers and lengths are in LEB128. So a field that is added,
/// removed or moved, or a variant that is not added at the end, changes the encoding: recordings
/// that exist then need another schema.
///
/// # Options, in `#[data(..)]`
///
/// * `schema = "track"`: the name of the type in graphs, instead of the name of the type in Rust.
///   Ports with different schemas cannot be connected.
/// * `crate = ::clockjack::graph`: the path of `Data` and so on, instead of `::clockjack_graph`.
///
/// # Errors
///
/// * *A payload must be a struct or an enum* without parameters, and an enum has variants.
/// * *An option is unknown*, or occurs twice, or is on a field.
#[proc_macro_derive(Data, attributes(data))]
pub fn data(item: TokenStream) -> TokenStream {
    data::data(item.into(), component::RootCrate::Graph).into()
}

/// [`macro@Data`] for crates that depend only on the facade `clockjack`, which re-exports it as
/// `Data`. It uses the path `::clockjack::graph`; everything else is the same.
#[proc_macro_derive(FacadeData, attributes(data))]
pub fn facade_data(item: TokenStream) -> TokenStream {
    data::data(item.into(), component::RootCrate::Facade).into()
}

/// Makes a struct or an enum a message that travels between nodes, or a part of such messages.
///
/// ```ignore
/// #[derive(Wire)]
/// #[wire(id = "demo.Counter")]
/// enum Msg {
///     Add(u64),
///     Sum(ReplyTo<u64>),
/// }
/// ```
///
/// implements `clockjack_wire::Wire`: the message has the stable name `demo.Counter`, version 1,
/// and the bytes of the postcard format. A `ReplyTo` stays in its process and travels as a number,
/// so the type works with `ask` too; a variant may have one. A type without any `ReplyTo` also
/// implements `clockjack_wire::Field`, and so does a type without an `id`, which then is only a
/// part of other messages.
///
/// # Options, in `#[wire(..)]`
///
/// * `id = "shop.Order"`: the stable name of the type. It never changes; the name of the Rust type
///   may.
/// * `version = 2`: the version that this program writes, 1 by default. Any change that changes the
///   bytes needs a new one: fields and variants in another order, added or removed.
/// * `upcast = Order::upcast`: a function `fn(version: u16, from: &mut Decoder<'_>) -> Result<Self,
///   DecodeError>` that reads older versions. For a type with a `ReplyTo` it returns
///   `Result<Decoded<Self>, DecodeError>`, because an older request has to be asked.
/// * `oldest = 1`: the oldest version that `upcast` reads.
/// * `crate = ::clockjack::wire`: the path of `Wire` and so on, instead of `::clockjack_wire`.
///
/// # Errors
///
/// * *An `ActorRef` cannot travel*: export the actor and send its `Address`.
/// * *Only one `ReplyTo` may travel*, and a request needs an `id`.
/// * *A type that travels cannot have parameters*.
/// * *An option is unknown*, occurs twice, or contradicts another one.
/// * *`#[wire(..)]` belongs on the struct or enum*: fields and variants have no options.
#[proc_macro_derive(Wire, attributes(wire))]
pub fn wire(item: TokenStream) -> TokenStream {
    wire::wire(item.into(), wire::RootCrate::Wire).into()
}

/// [`macro@Wire`] for crates that depend only on the facade `clockjack`, which re-exports it as
/// `Wire`. It uses the path `::clockjack::wire`; everything else is the same.
#[proc_macro_derive(FacadeWire, attributes(wire))]
pub fn facade_wire(item: TokenStream) -> TokenStream {
    wire::wire(item.into(), wire::RootCrate::Facade).into()
}
