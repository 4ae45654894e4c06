//! The page on which a person decides about an app: who asks, where the answer goes, what is allowed, with which team.

use askama::Template;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts::{Membership, Session};
use grabd_engine::oauth::Asked;
use http::StatusCode;

use super::authorize_path;
use crate::Web;
use crate::apps::list::environment_name;
use crate::form::Complaint;
use crate::number::grouped;
use crate::page::{Frame, page_leading_to};

/// The field with the right to decide once.
pub(super) const TICKET: &str = "ticket";

/// Characters of an app's name that stand in the title.
const TITLE_CHARS: usize = 40;

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    frame: Frame,
    form_token: &'a str,
    action: String,
    ticket: &'a str,
    title: String,
    client_host: Option<&'a str>,
    returns_to: &'a str,
    is_loopback: bool,
    email: &'a str,
    warning: String,
    choices: Vec<Choice>,
    errors: &'a [Complaint],
}

/// What an app would use: a team's credits and captures in one environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) team: TeamId,
    pub(super) environment: Environment,
}

/// A place as it is offered.
#[derive(Debug)]
struct Choice {
    value: String,
    team: String,
    environment: &'static str,
    about: String,
    is_preselected: bool,
}

impl Place {
    /// A place as the form has it: `<team>/live` or `<team>/test`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (team, word) = text.split_once('/')?;
        let environment = [Environment::Live, Environment::Test].into_iter().find(|own| own.as_str() == word)?;
        Some(Self { team: team.parse().ok()?, environment })
    }
}

/// The page. The answer to its form leads to the app's address, which the policy has to name.
pub(super) fn page(
    web: &Web,
    session: &Session,
    asked: &Asked,
    teams: &[Membership],
    ticket: &str,
    status: StatusCode,
    errors: &[Complaint],
) -> Response {
    let template = ConsentPage {
        frame: web.plain_frame(),
        form_token: &session.csrf,
        action: authorize_path(&web.core.oauth().issuer),
        ticket,
        title: shortened(&asked.client_name),
        client_host: asked.client_host.as_deref(),
        returns_to: asked.redirect.place(),
        is_loopback: asked.redirect.is_loopback(),
        email: session.person.email.as_str(),
        warning: warning(&asked.client_name, asked.client_host.as_deref(), asked.redirect.is_loopback()),
        choices: choices(teams),
        errors,
    };
    page_leading_to(&asked.redirect.origin_or_scheme(), status, &template)
}

/// What nobody has checked about the app.
fn warning(name: &str, host: Option<&str>, is_loopback: bool) -> String {
    let checked = match host {
        Some(host) => format!("“{name}” is what {host} says about itself; nobody here has checked it."),
        None => format!("“{name}” is what the app calls itself; nobody here has checked it."),
    };
    let whose = match is_loopback {
        true => "The answer goes to a program on this computer. Allow it only if you have just started that program.",
        false => "Allow it only if you have just come from there.",
    };
    format!("{checked} {whose}")
}

/// The beginning of a name, so that a long one does not push away what people have to see. The warning has all of it.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Both environments of every team. Live is preselected where it can pay, otherwise Test.
fn choices(teams: &[Membership]) -> Vec<Choice> {
    let can_pay = teams.iter().position(|team| team.live_credits > 0);
    let preselected = can_pay.map_or((0, Environment::Test), |team| (team, Environment::Live));
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
        (Environment::Live, 0) => "Real captures. There are no credits, so all are refused until there are.".to_owned(),
        (Environment::Live, 1) => "Real captures. 1 credit is left; each capture spends one.".to_owned(),
        (Environment::Live, _) => {
            format!("Real captures. {} credits are left; each capture spends one.", grouped(credits.into()))
        }
        (Environment::Test, _) => "Free placeholder pictures, for trying out. Nothing is spent.".to_owned(),
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
    fn live_is_preselected_where_it_can_pay() {
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
            let place = chosen.next().and_then(|choice| Place::parse(&choice.value));
            let expected =
                preselected.map(|(number, environment)| Place { team: teams[number as usize - 1].team, environment });
            assert_eq!((place, chosen.count(), choices.len()), (expected, 0, 2 * teams.len()), "{credits:?}");
        }
    }

    #[test]
    fn a_place_is_a_team_and_an_environment() {
        let id = team(1, 0).team;
        let place = |environment| Some(Place { team: id, environment });
        assert_eq!(Place::parse(&format!("{id}/live")), place(Environment::Live));
        assert_eq!(Place::parse(&format!("{id}/test")), place(Environment::Test));
        for text in ["", "live", "/live", &format!("{id}"), &format!("{id}/"), &format!("{id}/Live")] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }

    #[test]
    fn long_names_are_shortened_between_characters() {
        let (fits, long) = ("ä".repeat(40), "ä".repeat(41));
        assert_eq!((shortened(&fits), shortened(&long)), (fits.clone(), format!("{fits}…")));
    }
}
