//! What `run` prints for people, without what depends on the machine.

/// The output without what depends on the machine: the second line, and the last two columns of the
/// table.
pub(crate) fn lasting(out: &str) -> Vec<&str> {
    let header = out.lines().find(|line| line.ends_with("p99")).expect("there is a table");
    let n_columns = header.len() - "      p50      p99".len();
    let (mut lasting, mut is_table) = (Vec::new(), false);
    for line in out.lines().filter(|line| !line.starts_with("took ")) {
        // A row is as long as the header; dots stand for rows that are left out.
        let is_row = line.chars().count() == header.len();
        is_table = line == header || (is_table && (is_row || line == "..."));
        lasting.push(line.get(..n_columns).filter(|_| is_table && is_row).unwrap_or(line));
    }
    lasting
}
