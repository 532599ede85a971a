//! Pages about the structure of a graph: connections, boundaries and cycles.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        PayloadTypeMismatch,
        means: "The two ends of an edge have different payload types.",
        "components:"
      - "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: input}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: sink, type: identity, execution: {lane: main}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: camera.out, to: sink.in, \
         policy: {copy_policy: shared_view}}"
      + "  - {id: e, kind: immediate, from: count.out, to: sink.in}"
        why: "a port has one payload type, and edges do not convert payloads."
    },
    entry! {
        MissingRequiredInput,
        means: "A required input is not connected.",
        "components:"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: main}}"
      + "edges:"
      + "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
        why: "without this input the component cannot compute anything."
    },
    entry! {
        OptionalInputUnconnected,
        means: "An optional input is not connected.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: pilot, type: controller, execution: {lane: main}}"
        "edges:"
        "  - {id: e, kind: immediate, from: count.out, to: pilot.in}"
      + "  - {id: f, kind: immediate, from: count.out, to: pilot.target}"
        why: "this is allowed, but an edge may have been forgotten."
    },
    entry! {
        BoundaryRoleMismatch,
        means: "The boundary role does not match the component's type.",
        "components:"
      - "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: output}}"
      + "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: input}}"
        why: "output boundaries start only after all earlier regions have succeeded, and a\n\
              recording contains the values of the input boundaries: the role changes what a run\n\
              does."
    },
    entry! {
        MissingBoundary,
        means: "A runnable graph has no input boundary or no output boundary.",
      - "graph: {name: example, kind: runnable}"
      + "graph: {name: example, kind: internal_test}"
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        why: "a graph without inputs or outputs has no visible effect. A part that only tests\n\
              use declares this: `kind: internal_test`."
    },
    entry! {
        PortMultiplicityMismatch,
        means: "Several edges end at an input that takes only one.",
        "components:"
        "  - {id: a, type: counter, execution: {lane: main}}"
        "  - {id: b, type: counter, execution: {lane: main}}"
      - "  - {id: copy, type: identity, execution: {lane: main}}"
      + "  - {id: sum, type: join, execution: {lane: main}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: a.out, to: copy.in}"
      - "  - {id: f, kind: immediate, from: b.out, to: copy.in}"
      + "  - {id: e, kind: immediate, from: a.out, to: sum.a}"
      + "  - {id: f, kind: immediate, from: b.out, to: sum.b}"
        why: "the component would receive the values of both edges mixed and could not tell them\n\
              apart."
    },
    entry! {
        ImmediateCycleWithoutLoop,
        means: "A cycle of immediate edges that no loop owns.",
        "components:"
        "  - {id: a, type: identity, execution: {lane: main}}"
        "  - {id: b, type: identity, execution: {lane: main}}"
        "edges:"
        "  - {id: there, kind: immediate, from: a.out, to: b.in}"
      - "  - {id: back, kind: immediate, from: b.out, to: a.in}"
      + "  - {id: back, kind: delay, from: b.out, to: a.in}"
        why: "each component waits for the other within one epoch. A delay edge breaks the\n\
              cycle: its value becomes visible one epoch later. Alternatively, a loop in\n\
              `composite_loops` owns the cycle and limits its iterations."
    },
    entry! {
        PartialCompositeLoop,
        means: "A loop contains only a part of a cycle, or components outside of it.",
        "components:"
        "  - {id: a, type: identity, execution: {lane: main}}"
        "  - {id: b, type: identity, execution: {lane: main}}"
        "edges:"
        "  - {id: there, kind: immediate, from: a.out, to: b.in}"
        "  - {id: back, kind: immediate, from: b.out, to: a.in}"
        "composite_loops:"
      - "  - {id: round, components: [a], loop_policy: {type: fixed_point, max_iterations: 5}}"
      + "  - {id: round, components: [a, b], loop_policy: {type: fixed_point, max_iterations: 5}}"
        why: "a loop is executed as one unit: its members are exactly the components that depend\n\
              on each other within an epoch. Overlapping cycles are one cycle and need one loop."
    },
    entry! {
        DecorativeCompositeLoop,
        means: "A loop contains no cycle.",
        "components:"
        "  - {id: a, type: counter, execution: {lane: main}}"
      - "composite_loops:"
      - "  - {id: round, components: [a], loop_policy: {type: fixed_point, max_iterations: 5}}"
        why: "the loop would iterate without any feedback. Remove the loop, or make the edge\n\
              that closes the cycle immediate."
    },
    entry! {
        InvalidLoopPolicy,
        means: "A loop's fields contradict each other.",
        "components:"
        "  - {id: a, type: identity, execution: {lane: main}}"
        "  - {id: b, type: identity, execution: {lane: main}}"
        "edges:"
        "  - {id: there, kind: immediate, from: a.out, to: b.in}"
        "  - {id: back, kind: immediate, from: b.out, to: a.in}"
        "composite_loops:"
      - "  - {id: round, components: [a, b], order: [a], loop_policy: {type: fixed_point}}"
      + "  - {id: round, components: [a, b], order: [b, a], loop_policy: {type: fixed_point}}"
        why: "an order lists every member once, and all members share a lane, since the loop is\n\
              executed as one unit. The compiler chooses what is not specified, and `plan`\n\
              prints it."
    },
];
