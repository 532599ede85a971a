//! Pages about names: what an edge, a component or an instance refers to must be there, once.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        UnknownTemplate,
        means: "An instance of a template that does not exist.",
        "templates:"
        "  - id: meter"
        "    parameters: []"
        "    components: [{id: count, type: counter, execution: {lane: main}}]"
        "    edges: []"
        "template_instances:"
      - "  - {id: left, template: metre}"
      + "  - {id: left, template: meter}"
        why: "a template is looked for in the same file only; there are no includes."
    },
    entry! {
        InvalidTemplateParameter,
        means: "A parameter of a template that is not given, not declared or not used rightly.",
        "templates:"
        "  - id: meter"
        "    parameters: [lane]"
        "    components: [{id: count, type: counter, execution: {lane: \"{{lane}}\"}}]"
        "    edges: []"
        "template_instances:"
      - "  - {id: left, template: meter, parameters: {}}"
      + "  - {id: left, template: meter, parameters: {lane: main}}"
        why: "every declared parameter is given, and no other: nothing is left to a default that\n\
              the reader of the instance does not see."
    },
    entry! {
        UnknownComponent,
        means: "An edge, a loop or a dependency names a component that does not exist.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: sink, type: output, execution: {lane: main}, boundary: {role: output}}"
        "edges:"
        "  - {id: e, kind: immediate, from: count.out, to: sink.in}"
      - "  - {id: f, kind: delay, from: count.out, to: snik.in}"
        why: "what is sent there would be lost. In an endpoint the last dot separates the\n\
              component from its port; a component of a subgraph has the subgraph's id before\n\
              it."
    },
    entry! {
        UnknownPort,
        means: "An edge names a port that its component does not have.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
        "  - {id: sink, type: output, execution: {lane: main}, boundary: {role: output}}"
        "edges:"
      - "  - {id: e, kind: immediate, from: count.outt, to: sink.in}"
      + "  - {id: e, kind: immediate, from: count.out, to: sink.in}"
        why: "ports belong to the component's type; a file connects them and makes none."
    },
    entry! {
        UnknownType,
        means: "A component is of a type that the registry does not have.",
        "components:"
      - "  - {id: count, type: countr, execution: {lane: main}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "types are code. A program registers its own beside the built-in ones and gets the\n\
              whole command with them; `clockjack doctor` lists those of this one."
    },
    entry! {
        DuplicateId,
        means: "An id is given twice.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
      - "  - {id: count, type: counter, execution: {lane: main}}"
      + "  - {id: count_2, type: counter, execution: {lane: main}}"
        why: "edges, metrics and traces name things by their ids, also after subgraphs and\n\
              templates are flattened."
    },
    entry! {
        InvalidConfig,
        means: "A setting that the component does not take.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main}, config: {no_such_setting: 1}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "a component declares its settings with type, range and choices, so that a wrong\n\
              one is found before anything runs."
    },
    entry! {
        DependencyCycle,
        means: "`depends_on` goes round.",
        "components:"
        "  - {id: a, type: counter, execution: {lane: main}, depends_on: [b]}"
      - "  - {id: b, type: counter, execution: {lane: main}, depends_on: [a]}"
      + "  - {id: b, type: counter, execution: {lane: main}}"
        why: "it says who is started first. It orders nothing else: data may well flow round."
    },
];
