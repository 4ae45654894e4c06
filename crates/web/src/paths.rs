//! Paths that several folders of pages link to.

use grabd_domain::ids::TeamId;

/// The sign-in page.
pub(crate) const SIGN_IN: &str = "/sign-in";
/// The page that asks for the code of the second factor, after the password.
pub(crate) const SIGN_IN_CODE: &str = "/sign-in/code";
/// The form of a sign-in with a passkey.
pub(crate) const SIGN_IN_PASSKEY: &str = "/sign-in/passkey";
/// The challenge for a passkey, as JSON. The script for passkeys contains this path.
pub(crate) const PASSKEY_CHALLENGE: &str = "/sign-in/passkey/challenge";
/// The page of a user's passkeys.
pub(crate) const PASSKEYS: &str = "/account/passkeys";
/// The page of a user's second factor.
pub(crate) const SECOND_FACTOR: &str = "/account/second-factor";
/// The page of a user's account.
pub(crate) const ACCOUNT: &str = "/account";
/// The list of a user's connected apps.
pub(crate) const APPS: &str = "/apps";
/// How to connect an agent.
pub(crate) const CONNECT: &str = "/connect";
/// The list of a user's teams.
pub(crate) const TEAMS: &str = "/teams";

/// Redirects to the form for a new capture of the user's first team, with the options of the query.
pub(crate) const NEW_CAPTURE: &str = "/capture";

/// The parameter of [`NEW_CAPTURE`] and [`ACCOUNT`] after the e-mail address was verified.
pub(crate) const VERIFIED: &str = "verified";

/// The path of a team. All its pages are below it.
pub(crate) fn team(team: TeamId) -> String {
    format!("{TEAMS}/{team}")
}

/// The path of a page of a team.
pub(crate) fn team_page(team: TeamId, page: &str) -> String {
    format!("{TEAMS}/{team}/{page}")
}

/// The path of the page with the users of a team.
pub(crate) fn users(team: TeamId) -> String {
    team_page(team, "people")
}

/// The path of the settings of a team.
pub(crate) fn settings(team: TeamId) -> String {
    team_page(team, "settings")
}
