//! Pages about the text of a file: encoding, YAML, limits, fields and their values.

use super::Page;
use crate::diagnostic::Code;

pub(super) const PAGES: &[Page] = &[
    Page {
        code: Code::InvalidEncoding,
        means: "The file is not UTF-8.",
        wrong: "",
        right: "",
        why: "ids are compared byte by byte and shown to people: in another encoding they would\n\
              be neither equal nor legible. Save the file as UTF-8 without a byte order mark.",
    },
    Page {
        code: Code::InvalidYaml,
        means: "The file is not YAML, or it uses what is not allowed here: anchors, aliases, tags, \
                documents.",
        wrong: "lanes:\n  main: &shared {type: event_loop}\n  other: *shared\n",
        right: "lanes:\n  main: {type: event_loop}\n  other: {type: event_loop}\n",
        why: "an alias lets a short file become a huge graph, and hides where a value stands.\n\
              Templates do the same job with bounds and with places that can be shown.",
    },
    Page {
        code: Code::LimitExceeded,
        means: "There is more of something than the limits allow.",
        wrong: "graph:\n  name: example\n  kind: internal_test\n  config:\n    \
                a: {b: {c: {d: {e: {f: {g: {h: {i: {j: 1}}}}}}}}}\n",
        right: "graph:\n  name: example\n  kind: internal_test\n  config:\n    a: {b: {c: 1}}\n",
        why: "a file may come from anywhere: what it can cost is bounded before it is read.\n\
              Every limit can be raised by its option, such as --max-components.",
    },
    Page {
        code: Code::UnsupportedSchemaVersion,
        means: "`schema_version` is not 1.",
        wrong: "schema_version: 2\n",
        right: "schema_version: 1\n",
        why: "a file of another version may mean something else by the same words.",
    },
    Page {
        code: Code::UnknownField,
        means: "A field that does not exist at this place.",
        wrong: "lanes:\n  main: {type: fixed_rate, periodms: 10}\n",
        right: "lanes:\n  main: {type: fixed_rate, period_ms: 10}\n",
        why: "a misspelt field that is passed over is a setting that silently does nothing.",
    },
    Page {
        code: Code::MissingField,
        means: "A field that must be there is not.",
        wrong: "components:\n  - {id: count, type: counter}\n",
        right: "components:\n  - {id: count, type: counter, execution: {lane: main}}\n",
        why: "where no value is right for most graphs there is no default, and nothing is\n\
              guessed.",
    },
    Page {
        code: Code::DuplicateKey,
        means: "A key stands twice in one map.",
        wrong: "lanes:\n  main: {type: event_loop}\n  main: {type: thread_pool}\n",
        right: "lanes:\n  main: {type: event_loop}\n  pool: {type: thread_pool}\n",
        why: "one of the two values would be lost, and readers of YAML do not agree which.",
    },
    Page {
        code: Code::WrongType,
        means: "A value of another type is needed.",
        wrong: "lanes:\n  main: {type: fixed_rate, period_ms: fast}\n",
        right: "lanes:\n  main: {type: fixed_rate, period_ms: 10}\n",
        why: "values are not converted: `10` and `\"10\"` differ, so that a file means one\n\
              thing.",
    },
    Page {
        code: Code::InvalidValue,
        means: "A value that the field cannot have.",
        wrong: "lanes:\n  main: {type: fixed_rate, period_ms: 10, overrun_policy: drop_tik}\n",
        right: "lanes:\n  main: {type: fixed_rate, period_ms: 10, overrun_policy: drop_tick}\n",
        why: "the values of such a field are a closed set; the report lists them.",
    },
    Page {
        code: Code::InvalidIdentifier,
        means: "An id or an endpoint that cannot be one.",
        wrong: "components:\n  - {id: \"my counter\", type: counter, execution: {lane: main}}\n",
        right: "components:\n  - {id: my_counter, type: counter, execution: {lane: main}}\n",
        why: "ids stand in endpoints, metrics and traces: letters, digits and `_ . : -` pass\n\
              through all of them unchanged.",
    },
    Page {
        code: Code::GraphValidationError,
        means: "A fault that has no code of its own.",
        wrong: "",
        right: "",
        why: "a fault is better told without a code than not at all. If you meet one, the\n\
              message says all that is known.",
    },
    Page {
        code: Code::SubgraphHiddenCycle,
        means: "Reserved: it is never reported.",
        wrong: "",
        right: "",
        why: "subgraphs are flattened before anything is checked, so that none can hide a cycle;\n\
              the cycle is reported as `immediate_cycle_without_loop`.",
    },
    Page {
        code: Code::DiagnosticNote,
        means: "Reserved for notes that are neither faults nor advice.",
        wrong: "",
        right: "",
        why: "programs that read reports can count on the name.",
    },
];
