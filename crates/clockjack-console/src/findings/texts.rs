//! What each finding means, as `clockjack explain` prints it.

/// What a finding means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Its code.
    pub code: &'static str,
    /// What it reports, in one line.
    pub title: &'static str,
    /// What causes it.
    pub cause: &'static str,
    /// An example.
    pub example: &'static str,
    /// What to do about it.
    pub repair: &'static str,
}

/// The explanation of a code, in whatever case.
#[must_use]
pub fn explain(code: &str) -> Option<&'static Explanation> {
    EXPLANATIONS.iter().find(|one| one.code.eq_ignore_ascii_case(code))
}

macro_rules! explanations {
    ($($code:literal, $title:literal, $cause:literal, $example:literal, $repair:literal;)*) => {
        /// The explanations of all findings, by code.
        pub const EXPLANATIONS: &[Explanation] = &[$(Explanation {
            code: $code,
            title: $title,
            cause: $cause,
            example: $example,
            repair: $repair,
        }),*];
    };
}

explanations! {
    "S01", "a handler does not return",
    "An actor has been in one handler for longer than `stuck_after`. Its worker does nothing else \
     meanwhile, and its mailbox fills. Mostly the handler waits for a lock, for a file or a \
     socket with blocking calls, or it computes for long.",
    "fn receive(&mut self, _cx: &mut Context<'_, Self>, order: Order) -> Result<Next, Failure> {\n\
     \x20   std::thread::sleep(Duration::from_secs(3)); // blocks the worker\n\
     \x20   Ok(Next::Stay)\n}",
    "Move calls that block to `spawn_blocking`, and send the result to the actor as a message. \
     Divide a long computation into messages that the actor sends to itself. For a device that \
     only blocking calls reach, give the actor a pinned dispatcher.";

    "S02", "actors wait for each other",
    "Each of these actors has asked the next one and handles no message before the answer comes, \
     and the last one has asked the first. No answer will ever come.",
    "// in `a`, which `b` asks at the same time:\n\
     cx.ask(&b, |reply| B::Get(reply)) // `b` waits for `a`, and `a` waits for `b`",
    "Let one of them send a message without waiting for an answer, or ask in a future that is not \
     exclusive, so that the actor handles messages meanwhile. A deadline for each ask turns the \
     standstill into an error.";

    "S03", "a mailbox is full",
    "Messages arrive faster than the actor handles them: its mailbox is above 80 % of its \
     capacity for 2 seconds, or returns messages to their senders.",
    "for order in orders { ledger.tell(order)?; } // a loop that is faster than `ledger`",
    "If the actor runs most of the time, divide its work among a pool of actors, or make its \
     handler faster. If it seldom runs, something else takes its worker: look at S01 and S06. Let \
     senders wait for room by `send`, or let the mailbox drop the oldest messages if only the \
     newest count.";

    "S04", "an actor restarts again and again",
    "An actor fails soon after each restart, more than three times per minute. What makes it fail \
     was not changed by the restart: a configuration, a file, a service that is not there, or one \
     message that comes again.",
    "Props::new(|| Feed::connect(\"host-that-is-gone\").unwrap())",
    "Read the text of the failure. Give the strategy a back-off, so that the restarts do not load \
     the system, and a limit, so that the failure is escalated. If one message causes it, check \
     the message before it is handled.";

    "S05", "messages are not handled",
    "More than ten messages per second become dead letters: their receiver has stopped, its \
     mailbox is full, or an answer came after the asker had stopped waiting.",
    "session.tell(Tick)?; // `session` has stopped a minute ago, and nobody has told the sender",
    "Watch the receiver, and stop sending when it terminates; or look it up again by the \
     receptionist. For late answers, raise the deadline of the ask, or find out why the answer \
     takes so long.";

    "S06", "all workers are busy",
    "Each worker is busy for more than 95 % of the time for 2 seconds, and more and more tasks \
     wait.",
    "(0..1_000_000).for_each(|n| pool.tell(Render(n)).unwrap())",
    "Look at the three actors with the largest share of time. Make them faster, give the program \
     more workers, or less work: a bounded mailbox in front of the work lets senders wait.";

    "S07", "timers fire late",
    "Of 100 timers, more than one fires more than ten ticks late. A worker that is in a long \
     handler fires no timers of its own until it is detected, and a machine without a free CPU \
     wakes nobody.",
    "cx.timers().start_periodic(KEY, Duration::from_millis(1), Tick); // next to long handlers",
    "Look at the worker that delays them, and at S01 and S06. Give actors that need their timers \
     in time a dispatcher of their own, with a real-time class if the system allows it.";

    "S08", "a lane does not keep its rate",
    "A lane with a fixed rate has ticks that take longer than their budget, or skips ticks.",
    "lanes:\n  - id: control\n    rate_hz: 1000 # and a component that takes 2 ms",
    "Look at the slowest component of the lane. Move what need not run at this rate to another \
     lane, or lower the rate.";

    "S09", "an edge loses messages",
    "An edge of a graph has dropped messages because its channel was full, has rejected them, or \
     has found them older than their lifespan.",
    "edges:\n\
     \x20 - { from: camera.out, to: detect.in, capacity: 1 } # `detect` is slower than the camera",
    "If only the newest message counts, say so in the edge's policy. Otherwise raise the capacity \
     for bursts, or the rate of the receiver.";

    "S10", "the recording has gaps",
    "The recorder could not write fast enough, so that entries are missing, or it is behind.",
    "clockjack run graph.yaml --record /media/slow-card/run.cjr",
    "Write to a faster disk, record fewer streams, or leave payloads out.";

    "S11", "the number of actors grows",
    "The number of live actors has grown by more than 1 % in each of the last ten minutes. Mostly \
     an actor per request, per session or per connection is started and never stopped.",
    "cx.spawn_anonymous(Session::new(socket))?; // and the session never returns `Next::Stop`",
    "Look at the parent that the finding names. Let its children stop when their work is done, or \
     after a receive timeout.";

    "S12", "all threads for blocking work are in use",
    "As many closures run as there may be threads, so further ones wait or are refused.",
    "for file in files { rt.spawn_blocking(move || upload(file))?; } // each waits for the \
     network",
    "Raise `threads_max` if the closures wait for something; if they compute, that only helps up \
     to the number of CPUs. Use asynchronous calls where there are any.";

    "S13", "the clock jumped, or stands still",
    "What makes time pass has not run: the machine was suspended, its process was stopped, the \
     host's loop did not call the runtime, or the interrupt does not come. Periodic jobs that \
     were missed were folded into one run.",
    "loop { read_sensors(); } // and never `root.run_until_idle()`",
    "Find out what stops the driver. If jumps are expected, choose for each job whether it \
     catches up on missed runs.";

    "S14", "the console itself has lost something",
    "Events came faster than the console takes them, or its thread did not run in time, so some \
     of its numbers are incomplete.",
    "A storm of failures, or a machine without a free CPU.",
    "Nothing in the program needs to change. Look at the other findings first, and take numbers \
     that are marked as incomplete for what they are.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::ORDER;

    #[test]
    fn every_finding_is_explained() {
        let codes: Vec<String> = (1..=14).map(|n| format!("S{n:02}")).collect();
        assert!(EXPLANATIONS.iter().map(|one| one.code).eq(codes.iter().map(String::as_str)));
        let mut order = ORDER.to_vec();
        order.sort_unstable();
        assert_eq!(order, codes);
        for one in EXPLANATIONS {
            for text in [one.title, one.cause, one.example, one.repair] {
                assert!(!text.is_empty(), "{}", one.code);
            }
        }
    }

    #[test]
    fn a_code_is_found_in_whatever_case() {
        assert_eq!(explain("s03").map(|one| one.code), Some("S03"));
        assert_eq!(explain("S15"), None);
    }
}
