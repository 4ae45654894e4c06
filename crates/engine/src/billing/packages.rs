//! The prepaid packages of the price list.

use crate::pricing::Package;
use crate::service::Core;

/// All packages, in the order of the price list.
pub fn packages(core: &Core) -> &[Package] {
    core.billing.pricing.packages()
}

/// Whether packages can be bought here. Otherwise the operator grants credits on request.
pub fn can_buy(core: &Core) -> bool {
    core.billing.stripe.is_some()
}
