//! Ask, pipe to self, exclusive await, a tokio socket.

use clockjack::{prelude::*, rt::RuntimeConfig};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const LONG: Duration = Duration::from_secs(10);

enum Db {
    Find(u32, ReplyTo<String>),
}

enum Msg {
    Fetch(u32),
    Flush,
}

struct Client {
    db: ActorRef<Db>,
    socket: Option<TcpStream>,
}

impl Actor for Client {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Fetch(id) => {
                cx.spawn_future(self.db.ask(|r| Db::Find(id, r), LONG), |_me, cx, host| {
                    cx.wait(TcpStream::connect(host?), |me, cx, socket| {
                        me.socket = Some(socket?);
                        cx.self_ref().tell(Msg::Flush)?;
                        Ok(Next::Stay)
                    })?;
                    Ok(Next::Stay)
                })?;
            }
            Msg::Flush => cx.wait_mut(|me| {
                Box::pin(async move {
                    if let Some(s) = &mut me.socket {
                        s.write_all(b"flushed").await?;
                        s.flush().await?;
                    }
                    Ok(Next::Stop)
                })
            })?,
        }
        Ok(Next::Stay)
    }
}

async fn feed(client: &ActorRef<Msg>) -> Result<(), SendError<Msg>> {
    client.send(Msg::Fetch(1)).await
}

#[test]
fn a_client_finds_its_server_by_an_ask_and_talks_over_a_socket()
-> Result<(), Box<dyn core::error::Error>> {
    let config = RuntimeConfig { tokio: 1, ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("net"), config)?;
    let listener = rt.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?.to_string();
    let db = Props::from_fn(move |_cx, Db::Find(id, reply_to)| {
        if id == 1 {
            reply_to.reply(address.clone());
        }
        Ok(Next::Stay)
    });
    let db = rt.spawn("db", db)?;
    let client = rt.spawn("client", move || Client { db: db.clone(), socket: None })?;
    let heard = rt.block_on(async {
        feed(&client).await?;
        let (mut socket, _) = listener.accept().await?;
        let mut heard = String::new();
        socket.read_to_string(&mut heard).await?;
        Ok::<_, Failure>(heard)
    })?;
    assert_eq!(heard, "flushed");
    Ok(())
}
