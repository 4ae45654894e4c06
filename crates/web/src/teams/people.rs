//! `/teams/{team}/people`: who is in it, who is invited, what it is called.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::accounts::{EMAIL_BYTES, Role};
use grabd_engine::accounts::{self, Invitation, Member, MyTeam, Session};
use http::StatusCode;

use super::{path, people_path};
use crate::Web;
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::moment::Moment;
use crate::page::{Frame, Rights, page_with};
use crate::problem::Problem;
use crate::session::sign_in_first;

#[derive(Template)]
#[template(path = "team.html")]
struct TeamPage<'a> {
    frame: Frame,
    form_token: &'a str,
    team_name: &'a str,
    path: String,
    is_owner: bool,
    notice: &'static str,
    /// The link that whoever invited somebody has to pass on.
    link: Option<&'a str>,
    sends_mail: bool,
    people: Vec<Row>,
    invitations: Vec<Invited>,
    email: Field,
    name: Field,
    errors: &'a [Complaint],
}

/// Somebody, as they are shown.
struct Row {
    id: String,
    email: String,
    role: &'static str,
    is_owner: bool,
    is_only_owner: bool,
    is_me: bool,
    since: Moment,
}

/// An invitation, as it is shown.
struct Invited {
    id: String,
    email: String,
    role: &'static str,
    until: Moment,
}

/// A role as people read it.
pub(crate) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Owner => "Owner",
        Role::Member => "Member",
    }
}

/// What was done, by the word in the address that says it.
const NOTICES: [(&str, &str); 6] = [
    ("founded", "The team is there. It has neither keys nor credits yet."),
    ("joined", "You are in the team."),
    ("renamed", "The team has its new name."),
    ("invited", "The invitation is on its way. It counts for seven days."),
    ("withdrawn", "The invitation counts no more."),
    ("changed", "The change is made."),
];

/// The page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_first(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let notice = NOTICES.iter().find(|(word, _)| query.has(word)).map_or("", |(_, notice)| *notice);
    Shown { notice, ..Shown::default() }.page(&web, &person.session, team, StatusCode::OK).await
}

/// What is answered with this page as a form, and asked for again as an address, leads back to it.
pub(crate) async fn show_again(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_first(request.uri().path())));
    };
    Ok(see_other(&people_path(web.my_team(&person.session, &team).await?.team)))
}

/// What the page shows beside the team itself.
#[derive(Default)]
pub(super) struct Shown<'a> {
    pub(super) notice: &'static str,
    pub(super) link: Option<&'a str>,
    pub(super) email: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) errors: &'a [Complaint],
}

impl Shown<'_> {
    pub(super) async fn page(
        self,
        web: &Web,
        session: &Session,
        team: MyTeam,
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let Self { notice, link, email, name, errors } = self;
        let me = session.person.id;
        let people = accounts::list_members(&web.core, me, team.team).await?;
        let invitations = accounts::list_invitations(&web.core, me, team.team).await?;
        let name = super::name_field("Name of the team", "", None, errors).holding(name.unwrap_or(&team.name));
        let mut frame = web.frame_about_team(session, team.team, "people").await?;
        frame.script = link.map(|_| web.assets.copy.path.clone());
        let owners = people.iter().filter(|member| member.role == Role::Owner).count();
        let template = TeamPage {
            frame,
            form_token: &session.csrf,
            team_name: &team.name,
            path: path(team.team),
            is_owner: team.role == Role::Owner,
            notice,
            link,
            sends_mail: web.core.sends_mail(),
            people: people.into_iter().map(|member| Row::of(member, session, owners)).collect(),
            invitations: invitations.into_iter().map(Invited::from).collect(),
            email: email_field(errors).holding(email),
            name,
            errors,
        };
        Ok(page_with(Rights { script: link.is_some(), ..Rights::default() }, status, &template))
    }
}

impl Row {
    fn of(member: Member, session: &Session, owners: usize) -> Self {
        let Member { user, email, role, since } = member;
        Self {
            id: user.to_string(),
            email: email.to_string(),
            role: role_name(role),
            is_owner: role == Role::Owner,
            is_only_owner: role == Role::Owner && owners == 1,
            is_me: user == session.person.id,
            since: since.into(),
        }
    }
}

impl From<Invitation> for Invited {
    fn from(invitation: Invitation) -> Self {
        let Invitation { id, team: _, team_name: _, email, role, invited_by: _, expires_at } = invitation;
        Self { id: id.to_string(), email: email.to_string(), role: role_name(role), until: expires_at.into() }
    }
}

fn email_field(complaints: &[Complaint]) -> Field {
    let field = Field {
        name: "email",
        label: "E-mail address",
        kind: "email",
        autocomplete: "off",
        longest: u32::try_from(*EMAIL_BYTES.end()).unwrap_or(u32::MAX),
        hint: "",
        value: String::new(),
        error: None,
    };
    field.with_errors(complaints)
}

/// Leads back to the page, which says what was done.
pub(super) fn back(team: &MyTeam, word: &str) -> Response {
    see_other(&format!("{}?{word}", people_path(team.team)))
}
