//! Pages about the text of a file: encoding, YAML, limits, fields and their values.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        InvalidEncoding,
        means: "The file is not UTF-8.",
        why: "ids are compared byte by byte and shown to people. In another encoding they would\n\
              be neither comparable nor readable. Save the file as UTF-8 without a byte order\n\
              mark."
    },
    entry! {
        InvalidYaml,
        means: "The file is not valid YAML, or uses anchors, aliases, tags or several documents.",
        "lanes:"
      - "  main: &shared {type: event_loop}"
      - "  other: *shared"
      + "  main: {type: event_loop}"
      + "  other: {type: event_loop}"
        why: "with aliases, a short file can become a huge graph, and the origin of a value is\n\
              hard to see. Templates do the same job with bounds and with exact source\n\
              locations."
    },
    entry! {
        LimitExceeded,
        means: "A limit is exceeded.",
        "graph:"
        "  name: example"
        "  kind: internal_test"
        "  config:"
      - "    a: {b: {c: {d: {e: {f: {g: {h: {i: {j: 1}}}}}}}}}"
      + "    a: {b: {c: 1}}"
        why: "a file may come from an untrusted source, so its cost is bounded before it is\n\
              read. Every limit has an option that raises it, such as --max-components."
    },
    entry! {
        UnsupportedSchemaVersion,
        means: "`schema_version` is not 1.",
      - "schema_version: 2"
      + "schema_version: 1"
        why: "a file of another version may use the same fields with another meaning."
    },
    entry! {
        UnknownField,
        means: "A field does not exist here.",
        "lanes:"
      - "  main: {type: fixed_rate, periodms: 10}"
      + "  main: {type: fixed_rate, period_ms: 10}"
        why: "if misspelt fields were ignored, a setting could silently have no effect."
    },
    entry! {
        MissingField,
        means: "A required field is missing.",
        "components:"
      - "  - {id: count, type: counter}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "a field has no default if no value suits most graphs, and nothing is guessed."
    },
    entry! {
        DuplicateKey,
        means: "A key occurs twice in one map.",
        "lanes:"
        "  main: {type: event_loop}"
      - "  main: {type: thread_pool}"
      + "  pool: {type: thread_pool}"
        why: "one of the two values would be lost, and YAML parsers disagree about which one."
    },
    entry! {
        WrongType,
        means: "A value has the wrong type.",
        "lanes:"
      - "  main: {type: fixed_rate, period_ms: fast}"
      + "  main: {type: fixed_rate, period_ms: 10}"
        why: "values are not converted: `10` and `\"10\"` differ, so that a file has exactly one\n\
              meaning."
    },
    entry! {
        InvalidValue,
        means: "A value is not allowed for its field.",
        "lanes:"
      - "  main: {type: fixed_rate, period_ms: 10, overrun_policy: drop_tik}"
      + "  main: {type: fixed_rate, period_ms: 10, overrun_policy: drop_tick}"
        why: "the field has a fixed set of values, which the report lists."
    },
    entry! {
        InvalidIdentifier,
        means: "An id or an endpoint is malformed.",
        "components:"
      - "  - {id: \"my counter\", type: counter, execution: {lane: main}}"
      + "  - {id: my_counter, type: counter, execution: {lane: main}}"
        why: "ids occur in endpoints, metrics and traces. Letters, digits and `_ . : -` are\n\
              valid in all of them."
    },
    entry! {
        GraphValidationError,
        means: "An error without a code of its own.",
        why: "an error without a code is better than no error. The message contains everything\n\
              that is known."
    },
];
