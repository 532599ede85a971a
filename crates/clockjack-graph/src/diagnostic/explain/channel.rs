//! Pages about edges and their channels: what they keep, what they lose, whom they hold up.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        MultiStateWriter,
        means: "Two state edges write one input.",
        "components:"
        "  - {id: a, type: counter, execution: {lane: main}}"
      - "  - {id: b, type: counter, execution: {lane: main}}"
        "  - {id: sink, type: output, execution: {lane: main}, boundary: {role: output}}"
        "edges:"
        "  - {id: e, kind: state, from: a.out, to: sink.in}"
      - "  - {id: f, kind: state, from: b.out, to: sink.in}"
        why: "state has one writer: with two, the order in which they write would decide what is\n\
              read. Join the values before, in a component."
    },
    entry! {
        InvalidChannelPolicy,
        means: "Fields of an edge's policy contradict each other.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: main}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: count.out, to: copy.in, policy: {overflow: block}}"
      + "  - id: e"
      + "    kind: immediate"
      + "    from: count.out"
      + "    to: copy.in"
      + "    policy: {mode: queue, capacity: 4, overflow: drop_oldest}"
        why: "a channel that keeps the newest value only is never full, so nothing can wait for\n\
              room. In the same way `max_inflight` belongs to async edges, and `allow_drop:\n\
              false` to a channel that loses nothing."
    },
    entry! {
        BlockingCycle,
        means: "A cycle of blocking edges, which would wait for itself.",
        "components:"
        "  - {id: a, type: identity, execution: {lane: main}}"
        "  - {id: b, type: identity, execution: {lane: main}}"
        "edges:"
        "  - {id: there, kind: delay, from: a.out, to: b.in, \
         policy: {mode: queue, overflow: block}}"
      - "  - {id: back, kind: delay, from: b.out, to: a.in, policy: {mode: queue, overflow: block}}"
      + "  - {id: back, kind: delay, from: b.out, to: a.in, policy: {mode: latest}}"
        why: "a component is called only if every blocking edge that leaves it has room. In a\n\
              cycle of such edges all can be full at once, and then none of them is ever called\n\
              again."
    },
    entry! {
        InvalidMoveOnlyMultireader,
        means: "A payload that is moved to several readers.",
        "components:"
        "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: input}}"
        "  - {id: sink, type: frame_output, execution: {lane: main}, boundary: {role: output}}"
        "edges:"
        "  - id: e"
        "    kind: immediate"
        "    from: camera.out"
        "    to: sink.in"
      - "    policy: {copy_policy: move_only, readers: multi}"
      + "    policy: {copy_policy: move_only, readers: single}"
        why: "who moves a value has it alone. Several readers share it: `copy_policy:\n\
              shared_view`."
    },
    entry! {
        BackpressureRisk,
        means: "A slow reader holds up its producer or loses messages.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: main}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: count.out, to: copy.in, \
         policy: {mode: queue, overflow: block}}"
      + "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
        why: "it may well be what is wanted. It is told because it couples the speed of\n\
              components that a reader of the file may think of as independent."
    },
    entry! {
        HighQueueDepthLatencyRisk,
        means: "So many messages may wait that they are old when they are read.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: main}}"
        "edges:"
        "  - id: e"
        "    kind: immediate"
        "    from: count.out"
        "    to: copy.in"
      - "    policy: {mode: queue, capacity: 1000, overflow: drop_oldest}"
      + "    policy: {mode: queue, capacity: 64, overflow: drop_oldest}"
        why: "a full queue adds the time of all that is in it. `deadline_ms` flags messages that\n\
              have waited too long, and `lifespan_ms` drops them."
    },
    entry! {
        LargePayloadCopy,
        means: "Large payloads are copied.",
        "components:"
        "  - {id: camera, type: frame_input, execution: {lane: main}, boundary: {role: input}}"
        "  - {id: sink, type: frame_output, execution: {lane: main}, boundary: {role: output}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: camera.out, to: sink.in, policy: {copy_policy: copy}}"
      + "  - {id: e, kind: immediate, from: camera.out, to: sink.in, \
         policy: {copy_policy: shared_view}}"
        why: "a view is as cheap for a frame as for a number: readers share what nobody changes."
    },
];
