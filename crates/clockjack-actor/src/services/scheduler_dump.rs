//! Dumps of the scheduler, requested by message.

use alloc::string::String;

use clockjack_sched::DumpFormat;

use crate::{Actor, ActorRef, ActorSystem, Context, Failure, Next, Props, ReplyTo, SpawnError};

/// The name of the service under `/system`.
const NAME: &str = "scheduler-dumps";

/// How often a call tries again, because another thread is starting the service, or the service has
/// just been stopped: longer than either takes, even if its thread does not run for a moment.
const ATTEMPTS_MAX: u32 = 1 << 10;

/// Requests a dump of the scheduler; the message of [`ActorSystem::scheduler_dumps`].
#[derive(Debug)]
pub struct SchedulerDumpRequest {
    /// The format of the dump.
    pub format: DumpFormat,
    /// Where the dump is sent.
    pub reply_to: ReplyTo<SchedulerDumpReply>,
}

/// The answer to a [`SchedulerDumpRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerDumpReply {
    /// The dump: wheels, and waiting and periodic jobs.
    pub text: String,
}

/// Answers [`SchedulerDumpRequest`]s.
struct SchedulerDumps;

impl Actor for SchedulerDumps {
    type Msg = SchedulerDumpRequest;

    fn receive(
        &mut self,
        cx: &mut Context<'_, Self>,
        request: SchedulerDumpRequest,
    ) -> Result<Next, Failure> {
        let mut text = String::new();
        cx.system().scheduler().jobs().dump(request.format, &mut text)?;
        request.reply_to.reply(SchedulerDumpReply { text });
        Ok(Next::Stay)
    }
}

impl ActorSystem {
    /// The service that answers requests for dumps of the scheduler, for tools and other actors
    /// that reach the system by messages. The first call starts it, as `/system/scheduler-dumps`.
    ///
    /// # Errors
    ///
    /// If the service cannot be started: there is no room, the system is sealed or terminating, or
    /// the service was stopped just now and still takes its name.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::{ActorSystem, AskError, scheduler_dump::SchedulerDumpRequest};
    /// # use clockjack_sched::DumpFormat;
    /// # use core::time::Duration;
    /// async fn dump(system: &ActorSystem) -> Result<String, Box<dyn core::error::Error>> {
    ///     let request = |reply_to| SchedulerDumpRequest { format: DumpFormat::Text, reply_to };
    ///     let dumps = system.scheduler_dumps()?;
    ///     Ok(dumps.ask(request, Duration::from_secs(1)).await?.text)
    /// }
    /// ```
    pub fn scheduler_dumps(&self) -> Result<ActorRef<SchedulerDumpRequest>, SpawnError<()>> {
        let mut attempts = 0;
        loop {
            if let Ok(found) = self.lookup(&alloc::format!("/system/{NAME}")) {
                return Ok(found);
            }
            match self.spawn_system(NAME, Props::new(|| SchedulerDumps)) {
                // Another thread was faster, or the service stops: look again.
                Err(refused) if refused.is_name_taken() && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                    clockjack_sync::backoff::wait(attempts);
                }
                spawned => return spawned.map_err(SpawnError::discard),
            }
        }
    }
}
