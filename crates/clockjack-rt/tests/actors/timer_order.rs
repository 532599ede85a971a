//! The place of a timer among messages, on workers: while a handler runs, another worker fires the
//! timers of the actor.

use core::time::Duration;

use clockjack_rt::{Runtime, RuntimeConfig, actor::ActorSystem};
use clockjack_testing::InTime;

use crate::{
    in_time::ShutdownInTime as _,
    timer_order::{Device, Msg, Seen, check},
};

/// Far beyond what a loaded machine needs; what takes longer hangs.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn neither_a_timer_nor_a_receive_timeout_overtakes_a_message_on_any_number_of_workers() {
    for workers in [1, 2, 4] {
        let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
        let runtime = InTime::new(
            Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
            RuntimeConfig::DEFAULT.drop_timeout,
        );
        let all: Vec<_> = (0..10)
            .map(|_| {
                let seen = Seen::default();
                let device = runtime.spawn_anonymous(Device::props(&seen)).unwrap();
                device.tell(Msg::Begin).unwrap();
                (device, seen)
            })
            .collect();
        for (device, seen) in all {
            runtime.block_on(runtime.system().when_stopped(&device));
            check(&seen);
        }
        drop(runtime.shutdown_in_time(LONG));
    }
}
