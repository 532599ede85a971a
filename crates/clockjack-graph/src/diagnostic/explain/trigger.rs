//! Pages about event sources and triggers: when a component is executed.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        InvalidEventSource,
        means: "An event source is invalid.",
        "components:"
        "  - id: count"
        "    type: counter"
      - "    event_sources: [{type: timer}]"
      + "    event_sources: [{type: timer, period_ms: 10}]"
        "    execution: {lane: main}"
        why: "a timer needs a period, and a message source needs an input. A component is driven\n\
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
        why: "a batch ends by `batch_size` or `batch_window_ms`, and a rate limit needs\n\
              `min_interval_ms`: without them the trigger is undefined."
    },
    entry! {
        TriggerMissingInput,
        means: "A trigger waits for an input at which no edge ends.",
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
        why: "no message ever arrives there, so the trigger would wait forever or ignore the\n\
              input."
    },
    entry! {
        IncompatibleTriggerEdgeMode,
        means: "A trigger waits for an input whose channel cannot make the trigger ready.",
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
        why: "a task completes at some later time, and only an async edge carries its result."
    },
    entry! {
        TriggerNeverReady,
        means: "No event can make the trigger ready.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - id: copy"
        "    type: identity"
      + "    event_sources: [{type: message, input: in}]"
        "    trigger_policy: {type: any_input, input: in}"
        "    execution: {lane: main}"
        "edges:"
        "  - {id: e, kind: immediate, from: count.out, to: copy.in}"
        why: "the trigger waits for events of a kind for which the component has no source."
    },
];
