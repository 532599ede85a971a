//! A client on a unix socket.
#![cfg(unix)]

use std::os::unix::fs::DirBuilderExt as _;

use clockjack_console::{
    client::Client,
    server::{Bind, Console},
    view::Auth,
};
use clockjack_rt::Runtime;

#[test]
fn a_client_on_a_socket_needs_no_token() {
    let directory = std::env::temp_dir().join(format!("cj-console-{}", std::process::id()));
    let _removed = std::fs::remove_dir_all(&directory);
    std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    let runtime = Runtime::new("house").unwrap();
    let at = Bind::SocketAt(directory.join("house.sock"));
    let console = Console::of(&runtime).bind(at.clone()).open().unwrap();
    let client = Client::connect(console.address()).unwrap();
    assert_eq!(client.hello().auth, Auth::Peer);
    let second = Console::of(&runtime).bind(at).open().unwrap_err();
    assert!(second.is_in_use(), "{second}");
    drop(console);
    assert!(Client::connect(client.address()).is_err());
    std::fs::remove_dir(directory).unwrap();
}
