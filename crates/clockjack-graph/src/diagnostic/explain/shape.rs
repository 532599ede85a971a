//! Pages about the shape of a graph: what is connected with what, borders, and who owns a cycle.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        PayloadTypeMismatch,
        means: "The ends of an edge carry different payloads.",
        "components:"
      - "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: input}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: sink, type: identity, execution: {lane: main}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: camera.out, to: sink.in, \
         policy: {copy_policy: shared_view}}"
      + "  - {id: e, kind: immediate, from: count.out, to: sink.in}"
        why: "a port has one type of payload, and nothing is converted on the way."
    },
    entry! {
        MissingRequiredInput,
        means: "An input that must be connected is not.",
        "components:"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: main}}"
      + "edges:"
      + "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
        why: "the component could never compute anything."
    },
    entry! {
        OptionalInputUnconnected,
        means: "An input that may be connected is not.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: pilot, type: controller, execution: {lane: main}}"
        "edges:"
        "  - {id: e, kind: immediate, from: count.out, to: pilot.in}"
      + "  - {id: f, kind: immediate, from: count.out, to: pilot.target}"
        why: "it is allowed, and worth a look if the edge was forgotten."
    },
    entry! {
        BoundaryRoleMismatch,
        means: "The role at the border is not that of the component's type.",
        "components:"
      - "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: output}}"
      + "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: input}}"
        why: "output boundaries start only after all earlier regions have succeeded, and input\n\
              boundaries are what a recording must hold: the role changes what the run does."
    },
    entry! {
        MissingBoundary,
        means: "A runnable graph has no input boundary or no output boundary.",
      - "graph: {name: example, kind: runnable}"
      + "graph: {name: example, kind: internal_test}"
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        why: "a graph that takes nothing in or gives nothing out does nothing that anybody sees.\n\
              A part that only tests look at says so: `kind: internal_test`."
    },
    entry! {
        PortMultiplicityMismatch,
        means: "Several edges end at an input that takes one.",
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
        why: "the component would see the values of both mixed and not know whose they are."
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
        why: "each waits for the other within one epoch. A delay edge breaks the cycle: its\n\
              value is seen one epoch later. Or a loop in `composite_loops` owns the cycle and\n\
              says how often it goes round."
    },
    entry! {
        PartialCompositeLoop,
        means: "A loop that owns a part of a cycle, or more than it.",
        "components:"
        "  - {id: a, type: identity, execution: {lane: main}}"
        "  - {id: b, type: identity, execution: {lane: main}}"
        "edges:"
        "  - {id: there, kind: immediate, from: a.out, to: b.in}"
        "  - {id: back, kind: immediate, from: b.out, to: a.in}"
        "composite_loops:"
      - "  - {id: round, components: [a], loop_policy: {type: fixed_point, max_iterations: 5}}"
      + "  - {id: round, components: [a, b], loop_policy: {type: fixed_point, max_iterations: 5}}"
        why: "a loop is run as one: its members are exactly those that depend on each other\n\
              within an epoch. Cycles that overlap are one cycle, and have one loop."
    },
    entry! {
        DecorativeCompositeLoop,
        means: "A loop that owns no cycle.",
        "components:"
        "  - {id: a, type: counter, execution: {lane: main}}"
      - "composite_loops:"
      - "  - {id: round, components: [a], loop_policy: {type: fixed_point, max_iterations: 5}}"
        why: "it would iterate something that nothing feeds back. Take the loop out, or make the\n\
              edge that was meant to close the cycle immediate."
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
        why: "an order names every member once, and members share a lane, since the loop is run\n\
              as one. What is not said is decided by the compiler and printed by `plan`."
    },
];
