//! Pages about event sources and triggers: when a component is called.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        InvalidEventSource,
        means: "An event source that cannot be.",
        "components:"
        "  - id: count"
        "    type: counter"
      - "    event_sources: [{type: timer}]"
      + "    event_sources: [{type: timer, period_ms: 10}]"
        "    execution: {lane: main}"
        why: "a timer needs a period, a message source an input; and one component is driven\n\
              either by time or by messages, so that its invocations have one order."
    },
    entry! {
        InvalidTriggerPolicy,
        means: "A trigger's fields contradict each other.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - id: copy"
        "    type: identity"
        "    event_sources: [{type: message, input: in}]"
      - "    trigger_policy: {type: batch, input: in}"
      + "    trigger_policy: {type: batch, input: in, batch_size: 4}"
        "    execution: {lane: main}"
        "edges:"
        "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
        why: "a batch ends by `batch_size` or by `batch_window_ms`, a rate limit has its\n\
              `min_interval_ms`: without them the trigger says nothing."
    },
    entry! {
        TriggerMissingInput,
        means: "A trigger looks at an input that no edge ends at.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - id: pilot"
        "    type: controller"
        "    event_sources: [{type: message, inputs: [in, target]}]"
        "    trigger_policy: {type: any_input, inputs: [in, target]}"
        "    execution: {lane: main}"
        "edges:"
        "  - {id: e, kind: immediate, from: count.out, to: pilot.in}"
      + "  - {id: f, kind: immediate, from: count.out, to: pilot.target}"
        why: "nothing ever comes there, so the trigger waits for nothing or passes it over."
    },
    entry! {
        IncompatibleTriggerEdgeMode,
        means: "A trigger looks at an input whose channel cannot make it ready.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - id: copy"
        "    type: identity"
        "    event_sources: [{type: task_ready, input: in}]"
        "    trigger_policy: {type: task_ready, input: in}"
        "    execution: {lane: main}"
        "edges:"
      - "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
      + "  - {id: e, kind: async, from: count.out, to: copy.in}"
        why: "tasks end at some later time, and only an async edge carries what they give."
    },
    entry! {
        TriggerNeverReady,
        means: "Nothing can make the trigger ready.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - id: copy"
        "    type: identity"
      + "    event_sources: [{type: message, input: in}]"
        "    trigger_policy: {type: any_input, input: in}"
        "    execution: {lane: main}"
        "edges:"
        "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
        why: "a trigger decides about events, and the component has no source of that kind."
    },
];
