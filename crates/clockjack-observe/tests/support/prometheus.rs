//! A strict reader of Prometheus' text format, version 0.0.4.
//!
//! It accepts less than Prometheus does: every family has a type before its samples and is
//! contiguous, counters end in `_total`, summaries have `_sum` and `_count`, and nothing occurs
//! twice.

use alloc::collections::{BTreeMap, BTreeSet};

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

/// The parsed text.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) series: Vec<Series>,
    /// Type by family.
    pub(crate) types: BTreeMap<String, String>,
    /// Help by family, without escapes.
    pub(crate) help: BTreeMap<String, String>,
}

/// Reads a whole text.
pub(crate) fn parse(text: &str) -> Result<Parsed, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    let mut parsed = Parsed::default();
    // The family that is being read: a later one may not return to it.
    let mut family = String::new();
    let mut seen = BTreeSet::new();
    for line in text.split_terminator('\n') {
        let result = if let Some(rest) = line.strip_prefix("# HELP ") {
            read_help(&mut parsed, rest)
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            read_type(&mut parsed, rest).map(|name| family = name)
        } else {
            read_series(line).and_then(|series| {
                check_family(&parsed, &family, &series)?;
                if !seen.insert((series.name.clone(), series.labels.clone())) {
                    return Err("the series is there twice".into());
                }
                parsed.series.push(series);
                Ok(())
            })
        };
        result.map_err(|fault| format!("{fault}: {line:?}"))?;
    }
    check_summaries(&parsed)?;
    Ok(parsed)
}

fn read_help(parsed: &mut Parsed, rest: &str) -> Result<(), String> {
    let (name, help) = rest.split_once(' ').ok_or("help without text")?;
    check_name(name)?;
    if parsed.types.contains_key(name) {
        return Err("help after the type".into());
    }
    let help = unescape(help, "\\n")?;
    match parsed.help.insert(name.into(), help) {
        None => Ok(()),
        Some(_) => Err("help twice".into()),
    }
}

fn read_type(parsed: &mut Parsed, rest: &str) -> Result<String, String> {
    let (name, kind) = rest.split_once(' ').ok_or("type without a word")?;
    check_name(name)?;
    if !matches!(kind, "counter" | "gauge" | "summary") {
        return Err(format!("unknown type {kind}"));
    }
    if kind == "counter" && !name.ends_with("_total") {
        return Err("a counter that does not end in _total".into());
    }
    match parsed.types.insert(name.into(), kind.into()) {
        None => Ok(name.into()),
        Some(_) => Err("the family is there twice".into()),
    }
}

fn read_series(line: &str) -> Result<Series, String> {
    let name_len = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(name_len);
    check_name(name)?;
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("a label without value")?;
            check_label(label)?;
            let end = closing_quote(after).ok_or("a label value without end")?;
            labels.push((label.to_owned(), unescape(&after[..end], "\\n\"")?));
            rest = &after[end + 1..];
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = rest.strip_prefix(',').ok_or("no comma between labels")?;
        }
    }
    let mut names: Vec<&String> = labels.iter().map(|(name, _)| name).collect();
    names.sort();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("a label is there twice".into());
    }
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    Ok(Series { name: name.into(), labels, value: read_value(value)? })
}

fn read_value(text: &str) -> Result<f64, String> {
    match text {
        "NaN" => Ok(f64::NAN),
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        _ if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            text.parse().map_err(|error| format!("{error}"))
        }
        _ => Err("no number".into()),
    }
}

fn check_family(parsed: &Parsed, family: &str, series: &Series) -> Result<(), String> {
    let kind = parsed.types.get(family).ok_or("a value before any type")?;
    let rest = series.name.strip_prefix(family).ok_or("a value of another family")?;
    let has_quantile = series.labels.iter().any(|(name, _)| name == "quantile");
    match (&**kind, rest, has_quantile) {
        ("summary", "", true) | ("summary", "_sum" | "_count", false) => Ok(()),
        ("counter" | "gauge", "", _) => {
            if kind == "counter" && (series.value.is_nan() || series.value < 0.0) {
                return Err("a counter below 0".into());
            }
            Ok(())
        }
        _ => Err(format!("no line of a {kind}")),
    }
}

/// Every summary has a sum and a count for each of its label sets.
fn check_summaries(parsed: &Parsed) -> Result<(), String> {
    for (family, _) in parsed.types.iter().filter(|(_, kind)| *kind == "summary") {
        let sets = |suffix: &str| -> BTreeSet<Vec<(String, String)>> {
            let name = format!("{family}{suffix}");
            let of_name = parsed.series.iter().filter(|series| series.name == name);
            let is_own = |label: &&(String, String)| label.0 != "quantile";
            of_name.map(|series| series.labels.iter().filter(is_own).cloned().collect()).collect()
        };
        let (sums, counts) = (sets("_sum"), sets("_count"));
        if sums.is_empty() || sums != counts || !sets("").is_subset(&sums) {
            return Err(format!("{family} lacks a sum or a count"));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if name.starts_with(|c: char| c.is_ascii_digit())
        || name.is_empty()
        || !name.chars().all(is_fit)
    {
        return Err(format!("{name:?} is no name of a metric"));
    }
    Ok(())
}

fn check_label(label: &str) -> Result<(), String> {
    check_name(label)?;
    if label.contains(':') || label.starts_with("__") {
        return Err(format!("{label:?} is no name of a label"));
    }
    Ok(())
}

/// The position of the first quote that no backslash escapes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(index, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(index)
    })
}

/// Removes the escapes; `known` are the characters that a backslash may precede.
fn unescape(text: &str, known: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(c) if known.contains(c) => out.push(c),
                other => return Err(format!("unknown escape {other:?}")),
            },
            _ => out.push(c),
        }
    }
    Ok(out)
}
