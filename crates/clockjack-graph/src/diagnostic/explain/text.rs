//! Pages about the text of a file: encoding, YAML, limits, fields and their values.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        InvalidEncoding,
        means: "The file is not UTF-8.",
        why: "ids are compared byte by byte and shown to people: in another encoding they would\n\
              be neither equal nor legible. Save the file as UTF-8 without a byte order mark."
    },
    entry! {
        InvalidYaml,
        means: "The file is not YAML, or it uses what is not allowed here: anchors, aliases, tags, \
                documents.",
        "lanes:"
      - "  main: &shared {type: event_loop}"
      - "  other: *shared"
      + "  main: {type: event_loop}"
      + "  other: {type: event_loop}"
        why: "an alias lets a short file become a huge graph, and hides where a value stands.\n\
              Templates do the same job with bounds and with places that can be shown."
    },
    entry! {
        LimitExceeded,
        means: "There is more of something than the limits allow.",
        "graph:"
        "  name: example"
        "  kind: internal_test"
        "  config:"
      - "    a: {b: {c: {d: {e: {f: {g: {h: {i: {j: 1}}}}}}}}}"
      + "    a: {b: {c: 1}}"
        why: "a file may come from anywhere: what it can cost is bounded before it is read.\n\
              Every limit can be raised by its option, such as --max-components."
    },
    entry! {
        UnsupportedSchemaVersion,
        means: "`schema_version` is not 1.",
      - "schema_version: 2"
      + "schema_version: 1"
        why: "a file of another version may mean something else by the same words."
    },
    entry! {
        UnknownField,
        means: "A field that does not exist at this place.",
        "lanes:"
      - "  main: {type: fixed_rate, periodms: 10}"
      + "  main: {type: fixed_rate, period_ms: 10}"
        why: "a misspelt field that is passed over is a setting that silently does nothing."
    },
    entry! {
        MissingField,
        means: "A field that must be there is not.",
        "components:"
      - "  - {id: count, type: counter}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "where no value is right for most graphs there is no default, and nothing is\n\
              guessed."
    },
    entry! {
        DuplicateKey,
        means: "A key stands twice in one map.",
        "lanes:"
        "  main: {type: event_loop}"
      - "  main: {type: thread_pool}"
      + "  pool: {type: thread_pool}"
        why: "one of the two values would be lost, and readers of YAML do not agree which."
    },
    entry! {
        WrongType,
        means: "A value of another type is needed.",
        "lanes:"
      - "  main: {type: fixed_rate, period_ms: fast}"
      + "  main: {type: fixed_rate, period_ms: 10}"
        why: "values are not converted: `10` and `\"10\"` differ, so that a file means one\n\
              thing."
    },
    entry! {
        InvalidValue,
        means: "A value that the field cannot have.",
        "lanes:"
      - "  main: {type: fixed_rate, period_ms: 10, overrun_policy: drop_tik}"
      + "  main: {type: fixed_rate, period_ms: 10, overrun_policy: drop_tick}"
        why: "the values of such a field are a closed set; the report lists them."
    },
    entry! {
        InvalidIdentifier,
        means: "An id or an endpoint that cannot be one.",
        "components:"
      - "  - {id: \"my counter\", type: counter, execution: {lane: main}}"
      + "  - {id: my_counter, type: counter, execution: {lane: main}}"
        why: "ids stand in endpoints, metrics and traces: letters, digits and `_ . : -` pass\n\
              through all of them unchanged."
    },
    entry! {
        GraphValidationError,
        means: "A fault that has no code of its own.",
        why: "a fault is better told without a code than not at all. If you meet one, the\n\
              message says all that is known."
    },
    entry! {
        SubgraphHiddenCycle,
        means: "Reserved: it is never reported.",
        why: "subgraphs are flattened before anything is checked, so that none can hide a cycle;\n\
              the cycle is reported as `immediate_cycle_without_loop`."
    },
    entry! {
        DiagnosticNote,
        means: "Reserved for notes that are neither faults nor advice.",
        why: "programs that read reports can count on the name."
    },
];
