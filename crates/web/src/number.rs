//! Formatting of numbers.

/// `12345` as `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("digits are ASCII"));
    groups.collect::<Vec<_>>().join(",")
}

/// `+25,000`, or `−1` with U+2212, which is as wide as the plus sign.
pub(crate) fn signed(number: i32) -> String {
    let sign = if number < 0 { '\u{2212}' } else { '+' };
    format!("{sign}{}", grouped(number.unsigned_abs().into()))
}

/// `$0.002`, `$50`, `$49.50`; an amount in another currency as `50 EUR`.
pub(crate) fn money(amount: f64, currency: &str) -> String {
    let is_in_dimes = (amount * 10.0).fract() == 0.0 && amount.fract() != 0.0;
    let amount = if is_in_dimes { format!("{amount:.2}") } else { amount.to_string() };
    match currency {
        "USD" => format!("${amount}"),
        currency => format!("{amount} {currency}"),
    }
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

    #[test]
    fn signed_numbers_have_a_sign() {
        assert_eq!([signed(25_000), signed(-1), signed(i32::MIN)], ["+25,000", "\u{2212}1", "\u{2212}2,147,483,648"]);
    }

    #[test]
    fn money_includes_the_currency() {
        assert_eq!([money(0.002, "USD"), money(50.0, "USD"), money(50.0, "EUR")], ["$0.002", "$50", "50 EUR"]);
        assert_eq!([money(49.5, "USD"), money(1.63, "USD")], ["$49.50", "$1.63"]);
    }
}
