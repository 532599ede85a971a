//! What a console says where there are no unix sockets.
#![cfg(windows)]

use clockjack_console::server::Console;
use clockjack_rt::Runtime;

#[test]
fn a_console_that_is_bound_to_nothing_is_told_what_to_bind_to() {
    let runtime = Runtime::new("house").unwrap();
    let refused = Console::of(&runtime).open().unwrap_err();
    assert!(refused.is_no_directory(), "{refused}");
    assert!(refused.to_string().contains("bind it to `Bind::Loopback(0)`"), "{refused}");
}
