//! Pages about lanes and about how components are called.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        UnknownLane,
        means: "A component names a lane that does not exist.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: mian}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "there is no default lane: how a component is called is always written down."
    },
    entry! {
        ImmediateEdgeCrossesDomains,
        means: "An immediate edge between lanes that keep their own time.",
        "lanes:"
        "  main: {type: event_loop}"
        "  fast: {type: fixed_rate, period_ms: 1, wall_clock_enabled: true}"
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: fast}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
      + "  - {id: e, kind: state, from: count.out, to: copy.in}"
        why: "an immediate value is seen in the same epoch, and a wall-clock lane has epochs of\n\
              its own. The other kinds are seen at the reader's next epoch."
    },
    entry! {
        UnsupportedLaneType,
        means: "A lane of a type that does not exist.",
        "lanes:"
      - "  main: {type: thread_pol}"
      + "  main: {type: thread_pool}"
        why: "the types are event_loop, fixed_rate, thread_pool, isolated_thread and\n\
              manual_step."
    },
    entry! {
        InvalidLanePolicy,
        means: "A lane's fields contradict each other.",
        "lanes:"
      - "  main: {type: fixed_rate, wall_clock_enabled: true}"
      + "  main: {type: fixed_rate, wall_clock_enabled: true, period_ms: 10}"
        why: "ticks by the clock need to know how far they are apart: `period_ms` or `hz`."
    },
    entry! {
        UnsupportedErrorPolicy,
        means: "An error policy that does not exist, or that this component cannot have.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main, on_error: ignore}}"
      + "  - {id: count, type: counter, execution: {lane: main, on_error: continue}}"
        why: "the policies are fail_fast, continue, isolate and restart. Only a component that\n\
              can be made anew can be restarted; all those of a file can."
    },
    entry! {
        NotReentrant,
        means: "A component that is called as reentrant and cannot be.",
        "lanes:"
        "  main: {type: thread_pool, max_threads: 4}"
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main, reentrant: true}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "invocations that overlap share the component, so its type must be written for it.\n\
              In code that is `ExecuteShared`, whose `execute` takes `&self`."
    },
    entry! {
        AdvisoryLaneFieldIgnored,
        means: "A field of a lane is read, and has no effect.",
        "lanes:"
      - "  main: {type: event_loop, priority: 5}"
      + "  main: {type: event_loop}"
        why: "nothing looks as if it worked merely because it can be written. `plan` lists what\n\
              each lane does with its fields."
    },
    entry! {
        AdvisoryExecutionFieldIgnored,
        means: "A field of a component's execution is read, and has no effect.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main, burst: 4}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "nothing looks as if it worked merely because it can be written. A burst, for one,\n\
              counts on blocking edges only."
    },
];
