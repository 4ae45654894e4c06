//! Section `billing`, whose settings are validated together.

use serde::Deserialize;

use super::origin::is_origin;
use super::{Problems, Secret};

/// Section `billing`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Billing {
    pub top_up: String,
    pub stripe_secret_key: Secret,
    pub stripe_webhook_secret: Secret,
    pub stripe_api_base: String,
}

impl Billing {
    /// The secrets that events may be signed with.
    pub fn webhook_secrets(&self) -> Vec<String> {
        let secrets = self.stripe_webhook_secret.expose().split(',').map(str::trim);
        secrets.filter(|secret| !secret.is_empty()).map(str::to_owned).collect()
    }

    /// Whether the key belongs to a Stripe sandbox, in which no money is paid.
    pub fn takes_test_payments(&self) -> bool {
        ["sk_test_", "rk_test_"].iter().any(|prefix| self.stripe_secret_key.expose().starts_with(prefix))
    }

    /// Secret values are not included in problems.
    pub(super) fn validate(&self, problems: &mut Problems) {
        let is_secret = |text: &str, prefixes: &[&str]| {
            prefixes.iter().any(|prefix| text.starts_with(prefix)) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let (key, secrets) = (self.stripe_secret_key.expose(), self.webhook_secrets());
        if !key.is_empty() && !is_secret(key, &["sk_", "rk_"]) {
            problems.add(
                "billing.stripe_secret_key",
                "something else",
                "a key of Stripe's that begins with sk_ or rk_",
            );
        }
        if !secrets.iter().all(|secret| is_secret(secret, &["whsec_"])) {
            let allowed = "signing secrets of Stripe's that begin with whsec_, with commas between";
            problems.add("billing.stripe_webhook_secret", "something else", allowed);
        }
        let both = "set where the other is: without one nothing can be sold, without the other nothing is granted";
        match (key.is_empty(), secrets.is_empty()) {
            (true, false) => problems.add("billing.stripe_secret_key", "nothing", both),
            (false, true) => problems.add("billing.stripe_webhook_secret", "nothing", both),
            (true, true) | (false, false) => {}
        }
        let base = &self.stripe_api_base;
        // The secret key is sent to this URL.
        let is_private = url::Url::parse(base).is_ok_and(|url| match url.host() {
            Some(url::Host::Ipv4(address)) if url.scheme() == "http" => address.is_loopback(),
            Some(_) | None => url.scheme() == "https",
        });
        if !is_origin(base) || !is_private {
            let allowed = "an https origin such as https://api.stripe.com; http only on a loopback address";
            problems.add("billing.stripe_api_base", base, allowed);
        }
    }
}
