//! Output to stdout, and formatting of values.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Writes a line to stdout.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    write(format!("{text}\n").as_bytes())
}

/// Writes bytes to stdout. Exits with success when the reader closed the pipe, as `head` does.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.map_err(Failure::file("stdout")),
    }
}

/// Writes a table with aligned columns to stdout.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([head[column].len()]).max().unwrap_or(0)
        })
        .collect();
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// A human-readable number of bytes.
pub(crate) fn size(bytes: i64) -> String {
    indicatif::HumanBytes(u64::try_from(bytes).unwrap_or(0)).to_string()
}

/// The value, or `-` if there is none.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A time of the API, which is in UTC, without fractions of a second.
pub(crate) fn moment(time: &str) -> String {
    time.get(..19).unwrap_or(time).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_with_their_unit() {
        assert_eq!(size(48_213), "47.08 KiB");
        assert_eq!(or_dash(None::<u32>), "-");
    }
}
