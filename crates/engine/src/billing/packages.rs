//! The prepaid packages of the price list.

use grabd_domain::pricing;

use crate::core::Core;

/// A one-time purchase of credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Name in the price list; identifies the package in a purchase.
    pub name: String,
    /// Number of credits.
    pub credits: u32,
    /// Price in US cents.
    pub price_cents: u32,
}

/// All packages, in the order of the price list.
pub fn packages(core: &Core) -> &[Package] {
    core.billing.pricing.packages()
}

/// Whether packages can be bought here. Otherwise the operator grants credits on request.
pub fn can_buy(core: &Core) -> bool {
    core.billing.stripe.is_some()
}

impl From<&pricing::Package> for Package {
    /// The price list is validated when it is read, so its numbers are whole and small.
    fn from(listed: &pricing::Package) -> Self {
        let credits = u32::try_from(listed.credits).unwrap_or(0);
        Self { name: listed.name.clone(), credits, price_cents: (listed.price_usd * 100.0).round() as u32 }
    }
}
