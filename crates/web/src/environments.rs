//! The two environments: their order, their names, and the form field that selects one.

use grabd_domain::credentials::Environment;

use crate::form::Form;

/// The field of the environment.
pub(crate) const ENVIRONMENT: &str = "environment";

/// Both environments, in display order.
pub(crate) const ENVIRONMENTS: [Environment; 2] = [Environment::Live, Environment::Test];

/// The environment that the field of a form or link selects.
pub(crate) fn chosen_environment(input: &Form) -> Option<Environment> {
    ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == input.get(ENVIRONMENT))
}

/// The display name of an environment.
pub(crate) const fn environment_name(environment: Environment) -> &'static str {
    match environment {
        Environment::Live => "Live",
        Environment::Test => "Test",
    }
}
