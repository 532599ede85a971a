//! Futures in an actor: it asks another actor, connects a tokio socket, and uses it.
//!
//! `cargo run --example async_socket --features tokio`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use core::net::SocketAddr;

use clockjack::{prelude::*, rt::RuntimeConfig};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// Knows where the server is.
struct Directory {
    echo: SocketAddr,
}

#[actor]
impl Directory {
    #[ask]
    fn find(&self) -> SocketAddr {
        self.echo
    }
}

enum Msg {
    Connect,
    Say(&'static str, ReplyTo<String>),
}

struct Client {
    directory: ActorRef<DirectoryMsg>,
    socket: Option<TcpStream>,
}

impl Actor for Client {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            // `wait`: other messages stay in the mailbox until the closure has been called. With
            // `spawn_future` they would be handled meanwhile.
            Msg::Connect => cx.wait(self.directory.find(PATIENCE), |_me, cx, found| {
                cx.wait(TcpStream::connect(found?), |me, _cx, socket| {
                    println!("connected");
                    me.socket = Some(socket?);
                    Ok(())
                })?;
                Ok(())
            })?,
            // `wait_mut`: the future borrows the actor, and the socket in it.
            Msg::Say(line, reply_to) => cx.wait_mut(move |me| {
                Box::pin(async move {
                    let socket = me.socket.as_mut().ok_or(Failure::msg("not connected"))?;
                    socket.write_all(line.as_bytes()).await?;
                    let mut heard = vec![0; line.len()];
                    socket.read_exact(&mut heard).await?;
                    reply_to.reply(String::from_utf8(heard)?);
                    Ok(())
                })
            })?,
        }
        Ok(Next::Stay)
    }
}

/// Echoes the bytes of one client.
async fn echo(listener: TcpListener) -> Result<u64, Failure> {
    let (mut socket, _) = listener.accept().await?;
    let (mut from, mut to) = socket.split();
    Ok(tokio::io::copy(&mut from, &mut to).await?)
}

fn main() -> Result<(), Failure> {
    let pool = RuntimeConfig { tokio: 1, ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("net"), pool)?;

    let listener = rt.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let server = rt.pool().spawn_future(echo(listener)); // a future on the same pool

    let directory = rt.spawn("directory", move || Directory { echo: address })?;
    let client = move || Client { directory: directory.clone(), socket: None };
    let client = rt.spawn("client", client)?;
    client.tell(Msg::Connect)?;
    for line in ["hello", "is there anybody"] {
        let heard = rt.block_on(client.ask(|reply_to| Msg::Say(line, reply_to), PATIENCE))?;
        println!("heard: {heard}");
    }

    rt.system().stop(&client)?; // drops the socket, so the server ends
    println!("the server has sent {} bytes", rt.block_on(server)??);
    Ok(())
}
