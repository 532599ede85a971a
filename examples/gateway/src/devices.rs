//! The devices that are connected, by their names.

use std::{collections::BTreeMap, sync::Arc};

use clockjack::{exec::Pid, prelude::*};

use crate::{
    device::{self, Device},
    figures::Figures,
    store,
    tcp::Out,
};

/// The messages of [`Devices`].
#[derive(Debug)]
pub enum Msg {
    /// A device has connected. It replaces a connection of the same name.
    Join {
        /// The name of the device.
        name: String,
        /// The way back to it.
        writer: ActorRef<Out>,
        /// The actor of the device, or why there is none.
        reply_to: ReplyTo<Result<ActorRef<device::Msg>, &'static str>>,
    },
    /// Asks for a device.
    Find(String, ReplyTo<Option<ActorRef<device::Msg>>>),
    /// Asks for the number of devices.
    Count(ReplyTo<usize>),
    /// Stops all devices, and answers when the last one has stopped.
    Drain(ReplyTo<()>),
}

/// Starts an actor per device.
#[derive(Debug)]
pub struct Devices {
    devices_max: usize,
    store: ActorRef<store::Msg>,
    figures: Arc<Figures>,
    by_name: BTreeMap<String, ActorRef<device::Msg>>,
    /// All that have not stopped yet, also those that were replaced.
    names: BTreeMap<Pid, String>,
    n_joined: u64,
    is_draining: bool,
    drains: Vec<ReplyTo<()>>,
}

impl Devices {
    /// No devices yet.
    #[must_use]
    pub fn new(devices_max: usize, store: ActorRef<store::Msg>, figures: Arc<Figures>) -> Self {
        Self {
            devices_max,
            store,
            figures,
            by_name: BTreeMap::new(),
            names: BTreeMap::new(),
            n_joined: 0,
            is_draining: false,
            drains: Vec::new(),
        }
    }

    fn join(
        &mut self,
        cx: &mut Context<'_, Self>,
        name: String,
        writer: ActorRef<Out>,
    ) -> Result<Result<ActorRef<device::Msg>, &'static str>, Failure> {
        if self.is_draining {
            return Ok(Err("the gateway is stopping"));
        }
        if self.names.len() >= self.devices_max {
            return Ok(Err("too many devices"));
        }
        self.n_joined += 1;
        let props = Device::props(&name, writer, self.store.clone(), Arc::clone(&self.figures));
        // The number makes the path unique: the device that is replaced has not stopped yet.
        let device = cx.spawn_child(&format!("{name}-{}", self.n_joined), props)?;
        cx.watch(&device)?;
        self.names.insert(device.pid(), name.clone());
        if let Some(replaced) = self.by_name.insert(name, device.clone()) {
            // If this is refused, it has stopped.
            let _ = replaced.tell_control(device::Msg::Close);
        }
        Ok(Ok(device))
    }

    fn answer_drains(&mut self) {
        if self.names.is_empty() {
            self.drains.drain(..).for_each(|reply_to| reply_to.reply(()));
        }
    }
}

impl Actor for Devices {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Join { name, writer, reply_to } => reply_to.reply(self.join(cx, name, writer)?),
            Msg::Find(name, reply_to) => reply_to.reply(self.by_name.get(&name).cloned()),
            Msg::Count(reply_to) => reply_to.reply(self.by_name.len()),
            Msg::Drain(reply_to) => {
                for device in self.by_name.values() {
                    // By the control lane: readings that wait in the mailbox are refused.
                    let _ = device.tell_control(device::Msg::Drain);
                }
                self.is_draining = true;
                self.drains.push(reply_to);
                self.answer_drains();
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let Signal::Terminated(gone) = signal else { return Ok(Next::Unhandled) };
        if let Some(name) = self.names.remove(&gone.pid)
            && self.by_name.get(&name).is_some_and(|device| device.pid() == gone.pid)
        {
            self.by_name.remove(&name);
        }
        self.answer_drains();
        Ok(Next::Stay)
    }
}
