//! The limits in force, as text for the start: the first thing that a request may meet, and how to change it.

use crate::config::Config;

/// One line for each kind of limit, with the settings that change it.
pub(super) fn describe(config: &Config) -> Vec<String> {
    let (limits, abuse, retention) = (&config.limits, &config.abuse, &config.retention);
    let admission = abuse.admission(config.is_open());
    let megabytes = |megabytes: u64| match megabytes {
        0 => "any size".to_owned(),
        megabytes => format!("{megabytes} MB"),
    };
    let (failed, stored) = match admission.has_strangers {
        true => (
            format!(
                "{} s of failed captures a minute for an account, {} s if it never paid \
                 (GRABD_ABUSE__FAILED_SECONDS_PER_MINUTE, …_UNPAID)",
                abuse.failed_seconds_per_minute, abuse.failed_seconds_per_minute_unpaid
            ),
            format!(
                "{} of test captures for an account, {} of everything else if it never paid, else {} without a credit \
                 (GRABD_RETENTION__TEST_MEGABYTES, …UNPAID…, …UNCHARGED…)",
                megabytes(retention.test_megabytes),
                megabytes(retention.unpaid_megabytes),
                megabytes(retention.uncharged_megabytes)
            ),
        ),
        false => (
            match config.is_open() {
                true => "any number of failed captures (GRABD_ABUSE__STRANGERS)".to_owned(),
                false => {
                    "any number of failed captures, since nobody can sign up or buy credits (GRABD_ABUSE__STRANGERS)"
                        .to_owned()
                }
            },
            format!(
                "{} of captures without a credit for an account, and as much of test captures \
                 (GRABD_RETENTION__UNCHARGED_MEGABYTES)",
                megabytes(retention.uncharged_megabytes)
            ),
        ),
    };
    let kept = match admission.kept_percent() {
        0 => "none kept".to_owned(),
        percent => format!("{percent} % kept for accounts that have paid (GRABD_ABUSE__PAID_SLOTS_PERCENT)"),
    };
    vec![
        format!("{} requests a minute for a team (GRABD_LIMITS__REQUESTS_PER_MINUTE)", limits.requests_per_minute),
        format!("{} waiting asynchronous captures of a team (GRABD_LIMITS__ASYNC_QUEUE)", limits.async_queue),
        failed,
        stored,
        format!("{} slots (GRABD_BROWSER__SLOTS), {kept}", config.slots()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(overlay: &[(&'static str, &str)]) -> String {
        let overlay = overlay.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        describe(&Config::with(&overlay).unwrap()).join("\n")
    }

    #[test]
    fn private_service_has_no_limits_against_strangers() {
        let text = text(&[]);
        for expected in [
            "60 requests a minute for a team (GRABD_LIMITS__REQUESTS_PER_MINUTE)",
            "50 waiting asynchronous captures of a team (GRABD_LIMITS__ASYNC_QUEUE)",
            "any number of failed captures, since nobody can sign up or buy credits (GRABD_ABUSE__STRANGERS)",
            "5000 MB of captures without a credit for an account",
            "none kept",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn open_service_has_them() {
        for open in
            [("accounts.sign_up", "true"), ("billing.top_up", "https://example.com/buy"), ("abuse.strangers", "always")]
        {
            let text = text(&[open]);
            for expected in [
                "60 requests a minute",
                "60 s of failed captures a minute for an account, 20 s if it never paid",
                "100 MB of test captures for an account, 200 MB of everything else if it never paid, else 5000 MB",
                "25 % kept for accounts that have paid",
            ] {
                assert!(text.contains(expected), "{open:?} {expected}: {text}");
            }
        }
        let text = text(&[("accounts.sign_up", "true"), ("abuse.strangers", "never"), ("limits.async_queue", "7")]);
        assert!(text.contains("any number of failed captures (") && text.contains("7 waiting"), "{text}");
    }
}
