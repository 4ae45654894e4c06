//! The consent page: the app, its redirect URI, and the choice of a team and environment.

use askama::Template;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_domain::permissions::Permission;
use grabd_engine::accounts::{Membership, Session};
use grabd_engine::oauth::AuthorizationRequest;
use http::StatusCode;

use super::paths::authorize_path;
use crate::environments::environment_name;
use crate::form::FieldError;
use crate::number::grouped;
use crate::page::{Layout, page_with_form_target};
use crate::state::Web;

/// The field with the ticket, which allows a single decision.
pub(super) const TICKET_FIELD: &str = "ticket";

/// The box that lets an app manage webhooks and delete images, if it has asked for that.
pub(super) const MANAGE_FIELD: &str = "manage";
/// The value of [`MANAGE_FIELD`] when it is ticked.
pub(super) const YES: &str = "yes";

/// Maximum length of an app's name in the title.
const TITLE_CHARS: usize = 40;

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: String,
    ticket: &'a str,
    title: String,
    client_host: Option<&'a str>,
    returns_to: &'a str,
    is_loopback: bool,
    /// The code that a program on another device shows, which waits for the answer instead of a redirect.
    device_code: Option<String>,
    email: &'a str,
    warning: String,
    /// Whether the app asks to manage webhooks and delete images.
    asks_to_manage: bool,
    /// Whether the box for that is ticked.
    may_manage: bool,
    /// Of the teams for which the role of the user allows apps.
    choices: Vec<Choice>,
    /// Whether the user is in any team.
    has_teams: bool,
    errors: &'a [FieldError],
}

/// The state of the form.
pub(super) struct ConsentForm<'a> {
    /// The ticket of the form.
    pub(super) ticket: &'a str,
    /// Whether the box of [`MANAGE_FIELD`] is ticked, if there is one.
    pub(super) may_manage: bool,
    pub(super) errors: &'a [FieldError],
}

/// What an app gets access to: one environment of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TeamEnvironment {
    pub(super) team: TeamId,
    pub(super) environment: Environment,
}

/// An option of the form.
#[derive(Debug)]
struct Choice {
    value: String,
    team: String,
    environment: &'static str,
    about: String,
    is_preselected: bool,
}

impl TeamEnvironment {
    /// Parses the form value: `<team>/live` or `<team>/test`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (team, word) = text.split_once('/')?;
        let environment = [Environment::Live, Environment::Test].into_iter().find(|own| own.as_str() == word)?;
        Some(Self { team: team.parse().ok()?, environment })
    }
}

/// Renders the page. Its form redirects to the app's redirect URI, which the Content-Security-Policy must list.
pub(super) fn page(
    web: &Web,
    session: &Session,
    asked: &AuthorizationRequest,
    teams: &[Membership],
    form: &ConsentForm<'_>,
    status: StatusCode,
) -> Response {
    let &ConsentForm { ticket, may_manage, errors } = form;
    let permitted: Vec<Membership> =
        teams.iter().filter(|team| team.role.allows(Permission::ConnectApps)).cloned().collect();
    let template = ConsentPage {
        layout: web.plain_layout(),
        form_token: &session.csrf,
        action: authorize_path(&web.core.oauth().issuer),
        ticket,
        title: shortened(&asked.client_name),
        client_host: asked.client_host.as_deref(),
        returns_to: asked.redirect.display_location(),
        is_loopback: asked.redirect.is_loopback(),
        device_code: asked.device.as_ref().map(|device| device.user_code.to_string()),
        email: session.user.email.as_str(),
        warning: warning(asked),
        asks_to_manage: asked.asks_to_manage(),
        may_manage,
        choices: choices(&permitted),
        has_teams: !teams.is_empty(),
        errors,
    };
    page_with_form_target(&asked.redirect.origin_or_scheme(), status, &template)
}

/// The warning that the app's name is unverified.
fn warning(asked: &AuthorizationRequest) -> String {
    let name = &asked.client_name;
    let checked = match &asked.client_host {
        Some(host) => format!("The name “{name}” was provided by {host} and has not been verified."),
        None => format!("The name “{name}” was provided by the app and has not been verified."),
    };
    let whose = match (&asked.device, asked.redirect.is_loopback()) {
        (Some(_), _) => {
            "Access is given to a program on another device. Allow it only if you have just started that program, and it shows \
             this code."
        }
        (None, true) => {
            "Access is given to a program on this computer. Allow it only if you have just started that program."
        }
        (None, false) => "Allow it only if you just came from that site.",
    };
    format!("{checked} {whose}")
}

/// Shortens a name, so that a long name does not hide the rest of the page. The warning has the full name.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Both environments of each team. Preselects Live of the first team with credits, otherwise Test.
fn choices(teams: &[Membership]) -> Vec<Choice> {
    let with_credits = teams.iter().position(|team| team.live_credits > 0);
    let preselected = with_credits.map_or((0, Environment::Test), |team| (team, Environment::Live));
    let offered = |(number, team): (usize, &Membership)| {
        [Environment::Live, Environment::Test].map(|environment| Choice {
            value: format!("{}/{}", team.team, environment.as_str()),
            team: team.team_name.clone(),
            environment: environment_name(environment),
            about: about(environment, team.live_credits),
            is_preselected: (number, environment) == preselected,
        })
    };
    teams.iter().enumerate().flat_map(offered).collect()
}

fn about(environment: Environment, credits: u32) -> String {
    match (environment, credits) {
        (Environment::Live, 0) => "Real captures. The team has no credits, so captures are refused.".to_owned(),
        (Environment::Live, 1) => "Real captures. 1 credit left; each capture costs one.".to_owned(),
        (Environment::Live, _) => {
            format!("Real captures. {} credits left; each capture costs one.", grouped(credits.into()))
        }
        (Environment::Test, _) => "Free placeholder images for development.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::accounts::Role;
    use grabd_domain::ids::TeamId;

    use super::*;

    fn team(number: u8, live_credits: u32) -> Membership {
        let id: TeamId = format!("00000000-0000-7000-8000-0000000000{number:02}").parse().unwrap();
        Membership { team: id, team_name: format!("team {number}"), role: Role::Owner, live_credits }
    }

    #[test]
    fn live_is_preselected_for_the_first_team_with_credits() {
        for (credits, preselected) in [
            (&[0][..], Some((1, Environment::Test))),
            (&[1], Some((1, Environment::Live))),
            (&[0, 7], Some((2, Environment::Live))),
            (&[0, 0], Some((1, Environment::Test))),
            (&[], None),
        ] {
            let teams: Vec<Membership> = (1..).zip(credits).map(|(number, credits)| team(number, *credits)).collect();
            let choices = choices(&teams);
            let mut chosen = choices.iter().filter(|choice| choice.is_preselected);
            let first = chosen.next().and_then(|choice| TeamEnvironment::parse(&choice.value));
            let expected = preselected
                .map(|(number, environment)| TeamEnvironment { team: teams[number as usize - 1].team, environment });
            assert_eq!((first, chosen.count(), choices.len()), (expected, 0, 2 * teams.len()), "{credits:?}");
        }
    }

    #[test]
    fn form_value_parses_to_team_and_environment() {
        let id = team(1, 0).team;
        let expected = |environment| Some(TeamEnvironment { team: id, environment });
        assert_eq!(TeamEnvironment::parse(&format!("{id}/live")), expected(Environment::Live));
        assert_eq!(TeamEnvironment::parse(&format!("{id}/test")), expected(Environment::Test));
        for text in ["", "live", "/live", &format!("{id}"), &format!("{id}/"), &format!("{id}/Live")] {
            assert_eq!(TeamEnvironment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn long_names_are_shortened_between_characters() {
        let (fits, long) = ("ä".repeat(40), "ä".repeat(41));
        assert_eq!((shortened(&fits), shortened(&long)), (fits.clone(), format!("{fits}…")));
    }
}
