//! Pages about lanes and about how components are called.

use super::Page;
use crate::diagnostic::Code;

pub(super) const PAGES: &[Page] = &[
    Page {
        code: Code::UnknownLane,
        means: "A component names a lane that does not exist.",
        wrong: "components:\n  - {id: count, type: counter, execution: {lane: mian}}\n",
        right: "components:\n  - {id: count, type: counter, execution: {lane: main}}\n",
        why: "there is no default lane: how a component is called is always written down.",
    },
    Page {
        code: Code::ImmediateEdgeCrossesDomains,
        means: "An immediate edge between lanes that keep their own time.",
        wrong: "\
lanes:
  main: {type: event_loop}
  fast: {type: fixed_rate, period_ms: 1, wall_clock_enabled: true}
components:
  - {id: count, type: counter, execution: {lane: main}}
  - {id: copy, type: identity, execution: {lane: fast}}
edges:
  - {id: e, kind: immediate, from: count.out, to: copy.in}
",
        right: "\
lanes:
  main: {type: event_loop}
  fast: {type: fixed_rate, period_ms: 1, wall_clock_enabled: true}
components:
  - {id: count, type: counter, execution: {lane: main}}
  - {id: copy, type: identity, execution: {lane: fast}}
edges:
  - {id: e, kind: state, from: count.out, to: copy.in}
",
        why: "an immediate value is seen in the same epoch, and a wall-clock lane has epochs of\n\
              its own. The other kinds are seen at the reader's next epoch.",
    },
    Page {
        code: Code::UnsupportedLaneType,
        means: "A lane of a type that does not exist.",
        wrong: "lanes:\n  main: {type: thread_pol}\n",
        right: "lanes:\n  main: {type: thread_pool}\n",
        why: "the types are event_loop, fixed_rate, thread_pool, isolated_thread and\n\
              manual_step.",
    },
    Page {
        code: Code::InvalidLanePolicy,
        means: "A lane's fields contradict each other.",
        wrong: "lanes:\n  main: {type: fixed_rate, wall_clock_enabled: true}\n",
        right: "lanes:\n  main: {type: fixed_rate, wall_clock_enabled: true, period_ms: 10}\n",
        why: "ticks by the clock need to know how far they are apart: `period_ms` or `hz`.",
    },
    Page {
        code: Code::UnsupportedErrorPolicy,
        means: "An error policy that does not exist, or that this component cannot have.",
        wrong: "\
components:
  - {id: count, type: counter, execution: {lane: main, on_error: ignore}}
",
        right: "\
components:
  - {id: count, type: counter, execution: {lane: main, on_error: continue}}
",
        why: "the policies are fail_fast, continue, isolate and restart. Only a component that\n\
              can be made anew can be restarted; all those of a file can.",
    },
    Page {
        code: Code::NotReentrant,
        means: "A component that is called as reentrant and cannot be.",
        wrong: "\
lanes:
  main: {type: thread_pool, max_threads: 4}
components:
  - {id: count, type: counter, execution: {lane: main, reentrant: true}}
",
        right: "\
lanes:
  main: {type: thread_pool, max_threads: 4}
components:
  - {id: count, type: counter, execution: {lane: main}}
",
        why: "invocations that overlap share the component, so its type must be written for it.\n\
              In code that is `ExecuteShared`, whose `execute` takes `&self`.",
    },
    Page {
        code: Code::AdvisoryLaneFieldIgnored,
        means: "A field of a lane is read, and has no effect.",
        wrong: "lanes:\n  main: {type: event_loop, priority: 5}\n",
        right: "lanes:\n  main: {type: event_loop}\n",
        why: "nothing looks as if it worked merely because it can be written. `plan` lists what\n\
              each lane does with its fields.",
    },
    Page {
        code: Code::AdvisoryExecutionFieldIgnored,
        means: "A field of a component's execution is read, and has no effect.",
        wrong: "\
components:
  - {id: count, type: counter, execution: {lane: main, burst: 4}}
",
        right: "components:\n  - {id: count, type: counter, execution: {lane: main}}\n",
        why: "nothing looks as if it worked merely because it can be written. A burst, for one,\n\
              counts on blocking edges only.",
    },
];
