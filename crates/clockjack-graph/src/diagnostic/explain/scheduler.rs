//! Pages about lanes and about how components are executed.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        UnknownLane,
        means: "A component names a lane that does not exist.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: mian}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "there is no default lane: a file always states how each component is executed."
    },
    entry! {
        ImmediateEdgeCrossesDomains,
        means: "An immediate edge connects lanes with different epoch domains.",
        "lanes:"
        "  main: {type: event_loop}"
        "  fast: {type: fixed_rate, period_ms: 1, wall_clock_enabled: true}"
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: fast}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
      + "  - {id: e, kind: state, from: count.out, to: copy.in}"
        why: "an immediate value is visible in the same epoch, but a wall-clock lane has epochs\n\
              of its own. Values of the other edge kinds become visible in the reader's next\n\
              epoch."
    },
    entry! {
        UnsupportedLaneType,
        means: "A lane has an unknown type.",
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
        why: "wall-clock ticks need a period: set `period_ms` or `hz`."
    },
    entry! {
        UnsupportedErrorPolicy,
        means: "An error policy is unknown, or the component does not support it.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main, on_error: ignore}}"
      + "  - {id: count, type: counter, execution: {lane: main, on_error: continue}}"
        why: "the policies are fail_fast, continue, isolate and restart. A component can be\n\
              restarted only if it can be created again; every component of a file can."
    },
    entry! {
        NotReentrant,
        means: "A component is declared reentrant, but its type is not.",
        "lanes:"
        "  main: {type: thread_pool, max_threads: 4}"
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main, reentrant: true}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "overlapping invocations share the component, so its type must support that. In\n\
              code such a type implements `ExecuteShared`, whose `execute` takes `&self`."
    },
    entry! {
        AdvisoryLaneFieldIgnored,
        means: "A field of a lane is accepted, but has no effect.",
        "lanes:"
      - "  main: {type: event_loop, priority: 5}"
      + "  main: {type: event_loop}"
        why: "a field without effect must not look as if it worked. `plan` lists what each lane\n\
              does with its fields."
    },
    entry! {
        AdvisoryExecutionFieldIgnored,
        means: "A field of a component's execution is accepted, but has no effect.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main, burst: 4}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "a field without effect must not look as if it worked. For example, `burst` applies\n\
              only to blocking edges."
    },
];
