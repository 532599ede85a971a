//! Types that cannot travel.

use clockjack_macros::Wire;

struct ActorRef<M>(M);
struct ReplyTo<R>(R);

#[derive(Wire)]
#[wire(id = "test.Refs")]
struct Refs {
    to: ActorRef<u8>,
}

#[derive(Wire)]
#[wire(id = "test.Two")]
enum Two {
    Ask(ReplyTo<u8>, ReplyTo<u8>),
}

#[derive(Wire)]
enum NoId {
    Ask(ReplyTo<u8>),
}

#[derive(Wire)]
#[wire(id = "test.Borrowed")]
struct Borrowed<'a>(&'a str);

#[derive(Wire)]
#[wire(id = "test Space", size = 3)]
struct Names(u8);

#[derive(Wire)]
#[wire(id = "test.Old", version = 2, oldest = 1)]
struct Old(u8);

#[derive(Wire)]
#[wire(version = 2)]
struct Part(u8);

#[derive(Wire)]
#[wire(id = "test.Field")]
struct Field {
    #[wire(skip)]
    password: String,
}

#[derive(Wire)]
#[wire(id = "test.Variant")]
enum Variant {
    #[wire(id = "test.Other")]
    One(#[wire(default)] u8),
}

fn main() {}
