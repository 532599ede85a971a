//! Which numbers of which edges a plot shows, by the names that a user gives or by default.
//!
//! ```text
//! wanted          the edge `wanted`
//! wish.out        the first edge at the output `out` of `wish`
//! pose[1]         the second number of a value that consists of several
//! track[2]:f64    the third field of a payload with `#[derive(Data)]`, which is an f64
//! raw:u32         the values as this type, where the graph file does not define it
//! ```

use clockjack_graph::{compile::Plan, describe::BoundaryRole};

use super::number::{NumberType, Shape, field};

/// The most curves of a plot.
pub(crate) const SIGNALS_MAX: usize = 16;

/// The most curves of a plot whose edges the user did not choose.
const DEFAULT_MAX: usize = 3;

/// How many edges an error message lists.
const LISTED_MAX: usize = 32;

/// A number in the values of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The index of the edge in the plan.
    pub(crate) edge: usize,
    /// What the user calls it.
    pub(crate) name: String,
    /// The output that publishes the values.
    pub(crate) port: String,
    part: Part,
    number: NumberType,
}

/// Where the number is in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// It is the value.
    Whole,
    /// After this many bytes.
    Offset(usize),
    /// It is this field.
    Field(usize),
}

impl Signal {
    /// The number in a value.
    pub(crate) fn decode(&self, head: &[u8]) -> Option<f64> {
        let bytes = match self.part {
            Part::Whole => head,
            Part::Offset(at) => head.get(at..at + self.number.len())?,
            Part::Field(index) => field(head, index)?,
        };
        self.number.decode(bytes)
    }
}

/// The type of the values of an edge: its output defines it, or else its input.
pub(crate) fn schema(plan: &Plan, edge: usize) -> &str {
    let edge = &plan.edges[edge];
    let output = plan.components.get(edge.from.0).and_then(|one| one.outputs.get(edge.from.1));
    let input = plan.components.get(edge.to.0).and_then(|one| one.inputs.get(edge.to.1));
    let mut schemas = [output, input].into_iter().flatten().map(|port| port.schema.as_str());
    schemas.find(|schema| !schema.is_empty()).unwrap_or("")
}

/// The output of an edge, as `component.output`.
fn port(plan: &Plan, edge: usize) -> String {
    let (component, output) = plan.edges[edge].from;
    plan.components.get(component).map_or(String::new(), |one| {
        let output = one.outputs.get(output).map_or("", |port| port.name.as_str());
        format!("{}.{output}", one.spec.id)
    })
}

/// The signals that these names mean.
pub(crate) fn choose(plan: &Plan, names: &[String]) -> Result<Vec<Signal>, String> {
    let mut chosen: Vec<Signal> = Vec::new();
    for name in names {
        for signal in named(plan, name)? {
            if !chosen.contains(&signal) {
                chosen.push(signal);
            }
        }
    }
    if chosen.len() > SIGNALS_MAX {
        return Err(format!("a plot has at most {SIGNALS_MAX} curves, not {}", chosen.len()));
    }
    Ok(chosen)
}

/// The signals of a name. An id may contain colons and points, so the whole name is tried first.
fn named(plan: &Plan, name: &str) -> Result<Vec<Signal>, String> {
    if let Some(edge) = find(plan, name) {
        return whole(plan, edge);
    }
    let typed = name.rsplit_once(':').filter(|(_, of)| NumberType::named(of).is_some());
    let (rest, number) = typed.map_or((name, None), |(rest, of)| (rest, NumberType::named(of)));
    let indexed = rest.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let (id, index) = match indexed {
        Some((id, index)) => match index.parse() {
            Ok(index) => (id, Some(index)),
            Err(_) => return Err(format!("`{name}`: expected a whole number in the brackets")),
        },
        None => (rest, None),
    };
    let Some(edge) = find(plan, id) else {
        return Err(format!("the graph has no edge `{id}`; {}", plottable(plan)));
    };
    item(plan, edge, index, number).map(|signal| vec![signal])
}

/// The edge of an id, or the first edge at an output.
fn find(plan: &Plan, name: &str) -> Option<usize> {
    let by_id = plan.edges.iter().position(|edge| edge.id == name);
    by_id.or_else(|| (0..plan.edges.len()).find(|edge| port(plan, *edge) == name))
}

/// All numbers of an edge.
fn whole(plan: &Plan, edge: usize) -> Result<Vec<Signal>, String> {
    let n = match Shape::of(schema(plan, edge)) {
        Shape::Numbers(types) => types.len(),
        Shape::List(_) => 1,
        Shape::Number(_) | Shape::Other => {
            return item(plan, edge, None, None).map(|one| vec![one]);
        }
    };
    (0..n).map(|index| item(plan, edge, Some(index), None)).collect()
}

/// One number of an edge.
fn item(
    plan: &Plan,
    edge: usize,
    index: Option<usize>,
    number: Option<NumberType>,
) -> Result<Signal, String> {
    let (id, schema) = (plan.edges[edge].id.as_str(), schema(plan, edge));
    let (part, number) = match (Shape::of(schema), index, number) {
        (Shape::Number(number), None, None) => (Part::Whole, number),
        (Shape::Numbers(types), Some(index), None) if index < types.len() => {
            let offset = types[..index].iter().map(|one| one.len()).sum();
            (Part::Offset(offset), types[index])
        }
        (Shape::List(number), Some(index), None) => {
            (Part::Offset(index.saturating_mul(number.len())), number)
        }
        (Shape::Other, None, Some(number)) => (Part::Whole, number),
        (Shape::Other, Some(index), Some(number)) => (Part::Field(index), number),
        (Shape::Other, ..) => {
            let carries = if schema.is_empty() { "values of any type" } else { schema };
            return Err(format!(
                "edge `{id}` carries {carries}, which is not a number; name a field and its type, \
                 for example `{id}[0]:f64`, where the type is one of {}; {}",
                NumberType::names(),
                plottable(plan)
            ));
        }
        _ => {
            return Err(format!("edge `{id}` carries {schema}, which has no such item"));
        }
    };
    let index = index.map_or(String::new(), |index| format!("[{index}]"));
    Ok(Signal { edge, name: format!("{id}{index}"), port: port(plan, edge), part, number })
}

/// The edges whose values are numbers, as the end of a sentence.
fn plottable(plan: &Plan) -> String {
    let is_numeric = |edge: &usize| Shape::of(schema(plan, *edge)) != Shape::Other;
    let edges: Vec<usize> = (0..plan.edges.len()).filter(is_numeric).collect();
    if edges.is_empty() {
        return "it has no edge that carries numbers".into();
    }
    let name = |edge: &usize| format!("{} ({})", plan.edges[*edge].id, port(plan, *edge));
    let names: Vec<String> = edges.iter().take(LISTED_MAX).map(name).collect();
    let n_more = edges.len() - names.len();
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    format!("these edges carry numbers: {}{more}", names.join(", "))
}

/// What is shown if the user does not choose: the outputs of components at the boundary, and the
/// inputs of those without outputs. In a graph without a boundary, the first edges with numbers.
pub(crate) fn at_boundary(plan: &Plan) -> Vec<Signal> {
    let scalar = |edge: &usize| item(plan, *edge, None, None).ok();
    let mut chosen: Vec<Signal> = Vec::new();
    let mut shows_output = false;
    for component in &plan.components {
        let role = component.spec.boundary.role;
        if role != BoundaryRole::Processing {
            // The edges at an output carry the same values.
            let first = component.outputs.iter().filter_map(|port| port.edges.first());
            let n_before = chosen.len();
            chosen.extend(first.filter_map(scalar));
            shows_output |= role != BoundaryRole::Input && chosen.len() > n_before;
        }
    }
    if !shows_output {
        let outputs = plan.components.iter().filter(|component| {
            matches!(component.spec.boundary.role, BoundaryRole::Output | BoundaryRole::InputOutput)
        });
        let edges = outputs.flat_map(|component| &component.inputs).flat_map(|port| &port.edges);
        // What leaves the graph is more interesting than what enters it.
        let mut leaving: Vec<Signal> = edges.filter_map(scalar).collect();
        leaving.retain(|one| chosen.iter().all(|other| other.port != one.port));
        leaving.truncate(DEFAULT_MAX);
        chosen.truncate(DEFAULT_MAX - leaving.len());
        chosen.append(&mut leaving);
    }
    if chosen.is_empty() {
        chosen.extend((0..plan.edges.len()).filter_map(|edge| scalar(&edge)));
    }
    chosen.truncate(DEFAULT_MAX);
    chosen
}
