//! Pages about names: whatever an edge, a component or an instance refers to must exist exactly
//! once.

use super::{Page, entry};

pub(super) const PAGES: &[Page] = &[
    entry! {
        UnknownTemplate,
        means: "An instance refers to a template that does not exist.",
        "templates:"
        "  - id: meter"
        "    parameters: []"
        "    components: [{id: count, type: counter, execution: {lane: main}}]"
        "    edges: []"
        "template_instances:"
      - "  - {id: left, template: metre}"
      + "  - {id: left, template: meter}"
        why: "templates are found only in the same file; there are no includes."
    },
    entry! {
        InvalidTemplateParameter,
        means: "A template parameter is missing, undeclared or misused.",
        "templates:"
        "  - id: meter"
        "    parameters: [lane]"
        "    components: [{id: count, type: counter, execution: {lane: \"{{lane}}\"}}]"
        "    edges: []"
        "template_instances:"
      - "  - {id: left, template: meter, parameters: {}}"
      + "  - {id: left, template: meter, parameters: {lane: main}}"
        why: "an instance sets every declared parameter and no others. There are no hidden\n\
              defaults."
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
        why: "messages to it would be lost. In an endpoint, the last dot separates the component\n\
              from its port. A component of a subgraph has the subgraph's id as a prefix."
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
        why: "the component's type defines the ports; a file only connects them."
    },
    entry! {
        UnknownType,
        means: "A component is of a type that the registry does not have.",
        "components:"
      - "  - {id: count, type: countr, execution: {lane: main}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "types are code. A program registers its own types next to the built-in ones and\n\
              gets the whole command with them; `clockjack doctor` lists the types of this\n\
              command."
    },
    entry! {
        DuplicateId,
        means: "An id is used twice.",
        "components:"
        "  - {id: count, type: counter, execution: {lane: main}}"
      - "  - {id: count, type: counter, execution: {lane: main}}"
      + "  - {id: count_2, type: counter, execution: {lane: main}}"
        why: "edges, metrics and traces refer to things by their ids, also after subgraphs and\n\
              templates are flattened."
    },
    entry! {
        InvalidConfig,
        means: "A setting is unknown to the component, or its value is not allowed.",
        "components:"
      - "  - {id: count, type: counter, execution: {lane: main}, config: {no_such_setting: 1}}"
      + "  - {id: count, type: counter, execution: {lane: main}}"
        why: "a component declares its settings with type, range and choices, so that a wrong\n\
              setting is found before the graph runs."
    },
    entry! {
        DependencyCycle,
        means: "`depends_on` has a cycle.",
        "components:"
        "  - {id: a, type: counter, execution: {lane: main}, depends_on: [b]}"
      - "  - {id: b, type: counter, execution: {lane: main}, depends_on: [a]}"
      + "  - {id: b, type: counter, execution: {lane: main}}"
        why: "`depends_on` decides which component is started first. It does not order anything\n\
              else: data may well flow in a cycle."
    },
];
