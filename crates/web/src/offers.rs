//! What can be bought, from the price list.

use grabd_domain::pricing::{Package, Prices};

use crate::number::{grouped, money};

/// Credits with their price.
pub(crate) struct Offer {
    /// The name of the package in the price list. Empty for the yearly credits.
    pub(crate) name: String,
    pub(crate) credits: String,
    pub(crate) price: String,
    pub(crate) per: &'static str,
    /// The price of 1,000 captures.
    pub(crate) unit_price: String,
    /// Whether a capture costs less than with every other package.
    pub(crate) is_best: bool,
    /// When the credits expire.
    policy: String,
}

/// Offers, and what they have in common.
pub(crate) struct Offers {
    pub(crate) list: Vec<Offer>,
    /// When the credits expire, if that is the same for all.
    pub(crate) common_policy: Option<String>,
}

impl Offers {
    /// The credits of a year.
    pub(crate) fn yearly(prices: &Prices) -> Offer {
        let Prices { annual, currency, .. } = prices;
        Offer {
            name: String::new(),
            credits: grouped(annual.credits_per_year),
            price: money(annual.price_usd, currency),
            per: "a year",
            unit_price: unit_price(annual.price_usd, annual.credits_per_year, currency),
            is_best: false,
            policy: annual.reset_policy.clone(),
        }
    }

    /// The packages.
    pub(crate) fn of_packages(prices: &Prices) -> Self {
        Self::new(packages(prices).collect())
    }

    /// The packages and the yearly credits. The latter are left out if a package has as many for the same price, because
    /// those of packages do not expire.
    pub(crate) fn all(prices: &Prices) -> Self {
        let Prices { annual, prepaid_packages, .. } = prices;
        let is_better =
            |package: &Package| package.credits >= annual.credits_per_year && package.price_usd <= annual.price_usd;
        let yearly = (!prepaid_packages.iter().any(is_better)).then(|| Self::yearly(prices));
        Self::new(yearly.into_iter().chain(packages(prices)).collect())
    }

    fn new(list: Vec<Offer>) -> Self {
        let first = list.first().map(|offer| offer.policy.clone());
        let common_policy = first.filter(|policy| list.iter().all(|offer| offer.policy == *policy));
        Self { list, common_policy }
    }

    /// The policy of an offer, unless it is that of all.
    pub(crate) fn own_policy<'a>(&self, offer: &'a Offer) -> Option<&'a str> {
        self.common_policy.is_none().then_some(&offer.policy)
    }
}

impl Offer {
    /// When the credits expire.
    pub(crate) fn policy(&self) -> &str {
        &self.policy
    }
}

fn packages(prices: &Prices) -> impl Iterator<Item = Offer> {
    prices.prepaid_packages.iter().map(|package| Offer {
        is_best: is_best(package, &prices.prepaid_packages),
        name: package.name.clone(),
        credits: grouped(package.credits),
        price: money(package.price_usd, &prices.currency),
        per: "once",
        unit_price: unit_price(package.price_usd, package.credits, &prices.currency),
        policy: package.reset_policy.clone(),
    })
}

/// Whether a credit of this package costs less than one of every other package. Compared without division, so that equal
/// prices are equal.
fn is_best(package: &Package, all: &[Package]) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "no package has so many credits")]
    let is_cheaper =
        |other: &Package| package.price_usd * (other.credits as f64) < other.price_usd * (package.credits as f64);
    all.len() > 1 && all.iter().filter(|other| other.name != package.name).all(is_cheaper)
}

/// The price of 1,000 captures, to the cent.
fn unit_price(price: f64, credits: u64, currency: &str) -> String {
    #[expect(clippy::cast_precision_loss, reason = "no package has so many credits")]
    let cents = (price * 100_000.0 / credits.max(1) as f64).round();
    money(cents / 100.0, currency)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prices(policies: [&str; 2], annual_price: f64) -> Prices {
        let [first, second] = policies;
        serde_json::from_value(json!({
            "per_grab_usd": 0.002, "currency": "USD", "billing_model": "", "free_tier": false, "test_mode": "",
            "annual": { "price_usd": annual_price, "credits_per_year": 25_000, "reset_policy": "At the end of the year." },
            "prepaid_packages": [
                { "name": "25k", "credits": 25_000, "price_usd": 50.0, "reset_policy": first },
                { "name": "50k", "credits": 50_000, "price_usd": 100.0, "reset_policy": second },
            ],
        }))
        .unwrap()
    }

    fn own_policies(offers: &Offers) -> Vec<Option<&str>> {
        offers.list.iter().map(|offer| offers.own_policy(offer)).collect()
    }

    #[test]
    fn unit_price_is_that_of_a_thousand_captures() {
        let offers = Offers::of_packages(&prices(["Never.", "Never."], 50.0));
        assert_eq!(offers.list.iter().map(|offer| offer.unit_price.as_str()).collect::<Vec<_>>(), ["$2", "$2"]);
        assert_eq!(unit_price(49.0, 30_000, "EUR"), "1.63 EUR");
    }

    #[test]
    fn only_a_package_that_costs_less_per_capture_is_the_best() {
        let best = |price: f64| {
            let mut prices = prices(["Never.", "Never."], 50.0);
            prices.prepaid_packages[1].price_usd = price;
            Offers::of_packages(&prices).list.iter().map(|offer| offer.is_best).collect::<Vec<_>>()
        };
        assert_eq!([best(100.0), best(90.0), best(110.0)], [[false, false], [false, true], [true, false]]);
    }

    #[test]
    fn policy_of_all_offers_is_not_repeated() {
        let offers = Offers::of_packages(&prices(["Never.", "Never."], 50.0));
        assert_eq!((offers.common_policy.as_deref(), own_policies(&offers)), (Some("Never."), vec![None, None]));
    }

    #[test]
    fn each_offer_has_its_policy_if_they_differ() {
        let offers = Offers::of_packages(&prices(["Never.", "In a year."], 50.0));
        assert_eq!(own_policies(&offers), [Some("Never."), Some("In a year.")]);
        assert_eq!(offers.common_policy, None);
    }

    #[test]
    fn yearly_credits_are_offered_only_if_they_cost_less() {
        let credits = |annual_price| {
            let offers = Offers::all(&prices(["Never.", "Never."], annual_price));
            offers.list.iter().map(|offer| format!("{} {}", offer.price, offer.per)).collect::<Vec<_>>()
        };
        assert_eq!(credits(50.0), ["$50 once", "$100 once"]);
        assert_eq!(credits(40.0), ["$40 a year", "$50 once", "$100 once"]);
    }
}
