//! Pages about edges and their channels: which messages they keep or lose, and which producers they
//! block.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        MultiStateWriter,
        means: "Two state edges write to the same input.",
        "components:"
        "  - {id: a, type: counter, execution: {lane: main}}"
      - "  - {id: b, type: counter, execution: {lane: main}}"
        "  - {id: sink, type: output, execution: {lane: main}, boundary: {role: output}}"
        "edges:"
        "  - {id: e, kind: state, from: a.out, to: sink.in}"
      - "  - {id: f, kind: state, from: b.out, to: sink.in}"
        why: "a state has one writer. With two writers, the value that is read would depend on\n\
              the order in which they write. Combine the values in a component first."
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
        why: "a channel that keeps only the newest value is never full, so a producer cannot\n\
              wait for room. Likewise, `max_inflight` belongs to async edges, and `allow_drop:\n\
              false` requires a channel that loses nothing."
    },
    entry! {
        BlockingCycle,
        means: "Blocking edges form a cycle and can wait for each other forever.",
        "components:"
        "  - {id: a, type: identity, execution: {lane: main}}"
        "  - {id: b, type: identity, execution: {lane: main}}"
        "edges:"
        "  - {id: there, kind: delay, from: a.out, to: b.in, \
         policy: {mode: queue, overflow: block}}"
      - "  - {id: back, kind: delay, from: b.out, to: a.in, policy: {mode: queue, overflow: block}}"
      + "  - {id: back, kind: delay, from: b.out, to: a.in, policy: {mode: latest}}"
        why: "a component is executed only if every blocking edge that leaves it has room. In a\n\
              cycle of blocking edges all edges can be full at once; then none of the components\n\
              is ever executed again."
    },
    entry! {
        InvalidMoveOnlyMultireader,
        means: "A payload that is moved has several readers.",
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
        why: "moving a value gives it to one reader. Several readers can share it: `copy_policy:\n\
              shared_view`."
    },
    entry! {
        BackpressureRisk,
        means: "A slow reader blocks its producer or loses messages.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: copy, type: identity, execution: {lane: main}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: count.out, to: copy.in, \
         policy: {mode: queue, overflow: block}}"
      + "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
        why: "this may be intended. The warning exists because a blocking edge couples the speed\n\
              of components that look independent in the file."
    },
    entry! {
        HighQueueDepthLatencyRisk,
        means: "So many messages may be queued that they are old when they are read.",
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
        why: "a message in a full queue waits until all messages before it are read.\n\
              `deadline_ms` flags messages that have waited too long, and `lifespan_ms` drops\n\
              them."
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
        why: "a shared view costs the same for a frame as for a number: readers share a buffer\n\
              that nobody changes."
    },
];
