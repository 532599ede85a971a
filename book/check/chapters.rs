//! The chapters with Rust in them, as doc tests. Nobody reads these pages here: they are those of
//! the book.

/// Declares a module for each chapter, whose documentation is the chapter.
macro_rules! chapters {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(
            #[doc = include_str!($path)]
            #[cfg(doctest)]
            pub mod $name {}
        )+
    };
}

chapters! {
    tutorial_server = "../src/tutorial/server.md",
    tutorial_control_loop = "../src/tutorial/control-loop.md",
    tutorial_microcontroller = "../src/tutorial/microcontroller.md",
    tutorial_two_machines = "../src/tutorial/two-machines.md",
    how_to_test_in_virtual_time = "../src/how-to/test-in-virtual-time.md",
    how_to_survive_failures = "../src/how-to/survive-failures.md",
    how_to_ask_and_wait = "../src/how-to/ask-and-wait.md",
    how_to_bound_everything = "../src/how-to/bound-everything.md",
    how_to_look_at_a_running_system = "../src/how-to/look-at-a-running-system.md",
    how_to_export_metrics = "../src/how-to/export-metrics.md",
    how_to_tracing = "../src/how-to/tracing.md",
    how_to_schedule_jobs = "../src/how-to/schedule-jobs.md",
    how_to_escalate = "../src/how-to/escalate.md",
    how_to_order_messages = "../src/how-to/order-messages.md",
    how_to_jobs_that_fall_behind = "../src/how-to/jobs-that-fall-behind.md",
    how_to_inspect_the_scheduler = "../src/how-to/inspect-the-scheduler.md",
    how_to_sockets = "../src/how-to/sockets.md",
    how_to_axum = "../src/how-to/axum.md",
    how_to_deploy = "../src/how-to/deploy.md",
    how_to_shut_down = "../src/how-to/shut-down.md",
    how_to_write_a_component = "../src/how-to/write-a-component.md",
    how_to_below_the_actors = "../src/how-to/below-the-actors.md",
    migration_pekko = "../src/migration/pekko.md",
    migration_actor_crates = "../src/migration/actor-crates.md",
    migration_tokio = "../src/migration/tokio.md",
    migration_tokio_timers = "../src/migration/tokio-timers.md",
}
