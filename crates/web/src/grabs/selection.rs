//! The captures that are selected in the gallery: the fields `grab` of a form or query.

use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;

use crate::environments::ENVIRONMENTS;
use crate::form::Form;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// The most grabs that can be selected. At least a page of the gallery.
pub(super) const MAX_SELECTED: usize = 100;
/// The field with the id of a selected grab. Repeated for each.
pub(super) const FIELD: &str = "grab";

/// Finds the selected grabs, in the order of the request, each once. Counts once against the rate limit of each of their
/// environments, since their number is bounded.
///
/// # Errors
/// When nothing is selected, too many, or a grab of another team; or when the rate limit is reached.
pub(super) async fn find(web: &Web, at: &TeamContext, form: &Form) -> Result<Vec<Grab>, Problem> {
    let mut ids: Vec<&str> = Vec::new();
    for (_, id) in form.fields().iter().filter(|(name, _)| name == FIELD) {
        if !ids.contains(&id.as_str()) {
            ids.push(id);
        }
    }
    if ids.is_empty() {
        return Err(Problem::bad_request("Nothing selected", "No captures were selected.", "Go back and select some."));
    }
    if ids.len() > MAX_SELECTED {
        let message = format!("{} captures were selected; at most {MAX_SELECTED} are possible.", ids.len());
        return Err(Problem::bad_request("Too many captures", message, "Go back and select fewer."));
    }
    let mut grabs = Vec::with_capacity(ids.len());
    for id in ids {
        grabs.push(at.find_grab(web, id).await?.0);
    }
    for environment in ENVIRONMENTS.into_iter().filter(|of| has_one_of(&grabs, *of)) {
        at.team_member.admit(&web.core, environment).await?;
    }
    Ok(grabs)
}

fn has_one_of(grabs: &[Grab], environment: Environment) -> bool {
    grabs.iter().any(|grab| grab.environment == environment)
}
