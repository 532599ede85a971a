//! Reads commit logs, to find where two of them differ.

/// The records of a log, as text.
fn records(log: &[u8]) -> Vec<String> {
    let mut rest = &log[5..];
    let name = number(&mut rest);
    rest = &rest[usize::try_from(name).unwrap()..];
    let mut records = Vec::new();
    while let Some((tag, after)) = rest.split_first() {
        rest = after;
        let first = number(&mut rest);
        records.push(match *tag {
            b'E' => format!("epoch {first} at {} ns", number(&mut rest)),
            b'X' => format!("component {first} failed"),
            b'R' => format!("the same on e{first}"),
            tag => {
                let (value, after) = rest[1..].split_at(usize::from(rest[0]));
                rest = after;
                format!("{} on e{first}: {value:02x?}", char::from(tag))
            }
        });
    }
    records
}

fn number(rest: &mut &[u8]) -> u64 {
    let (mut n, mut shift) = (0, 0);
    loop {
        let byte = rest[0];
        *rest = &rest[1..];
        n |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return n;
        }
    }
}

/// Where two logs differ, with what came before.
pub(crate) fn first_difference(one: &[u8], other: &[u8]) -> String {
    let (one, other) = (records(one), records(other));
    let at = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let shown = |of: &[String]| of[at.saturating_sub(6)..of.len().min(at + 4)].join("\n  ");
    format!("record {at}\n  {}\nbut\n  {}", shown(&one), shown(&other))
}
