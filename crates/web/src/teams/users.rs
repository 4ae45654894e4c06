//! `/teams/{team}/people`: the members and invitations of a team.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::accounts::{EMAIL_BYTES, Role};
use grabd_domain::permissions::Permission;
use grabd_engine::accounts::{self, Invitation, Member, Session, UserTeam};
use http::StatusCode;

use super::secrets;
use crate::access::{role_name, role_summary};
use crate::extract::{MyTeamPage, QueryForm};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "team.html")]
struct TeamPage<'a> {
    layout: Layout,
    form_token: &'a str,
    team_name: &'a str,
    path: String,
    is_owner: bool,
    notice: &'static str,
    /// How many secrets in use people know who have no access to them any more, and the page that lists them.
    known_secrets: usize,
    secrets: String,
    /// The invitation link that the user has to pass on.
    link: Option<&'a str>,
    sends_mail: bool,
    users: Vec<Row>,
    invitations: Vec<InvitationRow>,
    email: Field,
    /// The roles that an invitation can give.
    roles: Vec<RoleChoice>,
    errors: &'a [FieldError],
}

/// A role in a form.
struct RoleChoice {
    value: &'static str,
    name: &'static str,
    about: &'static str,
    is_chosen: bool,
}

/// A member in the list.
struct Row {
    id: String,
    email: String,
    role: &'static str,
    /// The roles that the member can have.
    roles: Vec<RoleChoice>,
    is_only_owner: bool,
    is_me: bool,
    since: Moment,
}

/// An invitation in the list.
struct InvitationRow {
    id: String,
    email: String,
    role: &'static str,
    until: Moment,
}

/// The roles in the order of forms: first the one for most people, last the one that can do everything.
const FORM_ROLES: [Role; 4] = [Role::Member, Role::Viewer, Role::Billing, Role::Owner];

/// The choices of a form, one of which is chosen.
fn role_choices(chosen: Role) -> Vec<RoleChoice> {
    let choice = |role: Role| RoleChoice {
        value: role.as_str(),
        name: role_name(role),
        about: role_summary(role),
        is_chosen: role == chosen,
    };
    FORM_ROLES.into_iter().map(choice).collect()
}

/// Notices, by the query parameter that shows them.
const NOTICES: [(&str, &str); 5] = [
    ("founded", "Team created. It has no keys and no credits yet."),
    ("joined", "You have joined the team."),
    ("invited", "Invitation sent. It expires after seven days."),
    ("withdrawn", "Invitation revoked."),
    ("changed", "Change saved."),
];

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let notice = NOTICES.iter().find(|(word, _)| query.has(word)).map_or("", |(_, notice)| *notice);
    UsersView { notice, ..UsersView::default() }.render(&web, &user.session, team, StatusCode::OK).await
}

/// Redirects to the page when the URL of a submitted form is loaded with GET.
pub(crate) async fn redirect_to_page(MyTeamPage { team, .. }: MyTeamPage) -> Response {
    see_other(&paths::users(team.team))
}

/// The variable content of the page.
pub(super) struct UsersView<'a> {
    pub(super) notice: &'static str,
    pub(super) link: Option<&'a str>,
    pub(super) email: &'a str,
    /// The chosen role of the invitation.
    pub(super) role: Role,
    pub(super) errors: &'a [FieldError],
}

impl Default for UsersView<'_> {
    fn default() -> Self {
        Self { notice: "", link: None, email: "", role: Role::Member, errors: &[] }
    }
}

impl UsersView<'_> {
    pub(super) async fn render(
        self,
        web: &Web,
        session: &Session,
        team: UserTeam,
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let Self { notice, link, email, role, errors } = self;
        let me = session.user.id;
        let users = accounts::list_members(&web.core, me, team.team).await?;
        let invitations = accounts::list_invitations(&web.core, me, team.team).await?;
        let known_secrets = match team.role.allows(Permission::ManageKeys) {
            true => secrets::of_former_members(web, me, team.team).await?.len(),
            false => 0,
        };
        let mut layout = web.team_admin_layout(session, team.team, "people").await?;
        layout.script = link.map(|_| web.assets.copy.path.clone());
        let owners = users.iter().filter(|member| member.role == Role::Owner).count();
        let template = TeamPage {
            layout,
            form_token: &session.csrf,
            team_name: &team.name,
            path: paths::team(team.team),
            is_owner: team.role.allows(Permission::ManageMembers),
            notice,
            known_secrets,
            secrets: paths::team_page(team.team, "secrets"),
            link,
            sends_mail: web.core.sends_mail(),
            users: users.into_iter().map(|member| Row::of(member, session, owners)).collect(),
            invitations: invitations.into_iter().map(InvitationRow::from).collect(),
            email: email_field(errors).with_value(email),
            roles: role_choices(role),
            errors,
        };
        Ok(page(status, &template))
    }
}

impl Row {
    fn of(member: Member, session: &Session, owners: usize) -> Self {
        let Member { user, email, role, since } = member;
        Self {
            id: user.to_string(),
            email: email.to_string(),
            role: role_name(role),
            roles: role_choices(role),
            is_only_owner: role == Role::Owner && owners == 1,
            is_me: user == session.user.id,
            since: since.into(),
        }
    }
}

impl From<Invitation> for InvitationRow {
    fn from(invitation: Invitation) -> Self {
        let Invitation { id, team: _, team_name: _, email, role, invited_by: _, expires_at } = invitation;
        Self { id: id.to_string(), email: email.to_string(), role: role_name(role), until: expires_at.into() }
    }
}

fn email_field(errors: &[FieldError]) -> Field {
    let field = Field {
        name: "email",
        label: "E-mail address",
        kind: "email",
        autocomplete: "off",
        max_length: u32::try_from(*EMAIL_BYTES.end()).unwrap_or(u32::MAX),
        hint: "",
        value: String::new(),
        error: None,
    };
    field.with_errors(errors)
}

/// Redirects to the page, which shows the notice.
pub(super) fn redirect_with_notice(team: &UserTeam, notice: &str) -> Response {
    see_other(&format!("{}?{notice}", paths::users(team.team)))
}
