//! What can be bought: the prepaid packages of the price list.

use grabd_domain::pricing;

use crate::core::Core;

/// Credits that are bought once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name, by which it is bought.
    pub name: String,
    /// How many credits.
    pub credits: u32,
    /// What they cost, in cents of the price list's currency, US dollars.
    pub price_cents: u32,
}

/// Every package of the price list, in its order.
pub fn packages(core: &Core) -> &[Package] {
    core.pricing.packages()
}

/// May packages be bought here? Without it, people have to ask the operator, who grants by hand.
pub fn can_buy(core: &Core) -> bool {
    core.stripe.is_some()
}

impl From<&pricing::Package> for Package {
    /// The list has been judged before: its numbers are the published ones, which are whole and small.
    fn from(listed: &pricing::Package) -> Self {
        let credits = u32::try_from(listed.credits).unwrap_or(0);
        Self { name: listed.name.clone(), credits, price_cents: (listed.price_usd * 100.0).round() as u32 }
    }
}
