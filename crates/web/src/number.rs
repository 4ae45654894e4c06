//! A number as people read it.

/// `12345` as `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("digits are ASCII"));
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (25_000, "25,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
