//! `/operator/domains`: the rules for the domains of captured pages, and the form that adds one.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::Timestamp;
use grabd_domain::domains::{Domain, DomainError, DomainRule};
use grabd_engine::operator::{
    self, DOMAIN_RULES_INTERVAL, DomainRules, MAX_DOMAIN_RULES, SetDomainRuleOutcome, StoredDomainRule,
};
use http::StatusCode;

use super::context::unknown;
use super::navigation::DOMAINS;
use crate::extract::{OperatorContext, OperatorForm};
use crate::form::{Field, FieldError, Form};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::time_format::Moment;

/// The field with the domain of a new rule.
const DOMAIN_FIELD: &str = "domain";
/// The field with what the rule says.
const RULE_FIELD: &str = "rule";
/// Query parameters after a form, and what the page says then.
const NOTICES: [(&str, &str); 4] = [
    ("saved", "Rule saved. It applies from now on."),
    ("unchanged", "This rule existed already. Nothing was changed."),
    ("removed", "Rule removed. It no longer applies."),
    ("gone", "There was no such rule any more. Nothing was changed."),
];
/// Longest text of a rejected domain that an error repeats, in characters.
const SEEN_CHARS: usize = 60;

#[derive(Template)]
#[template(path = "operator_domains.html")]
struct DomainsPage<'a> {
    layout: Layout,
    form_token: &'a str,
    notice: Option<&'static str>,
    errors: &'a [FieldError],
    rules: Vec<Row>,
    /// Whether only pages of allowed domains are captured.
    only_allowed: bool,
    /// Whether a rule of the configuration is in the list.
    has_configured: bool,
    domain: Field,
    wants_allow: bool,
    rule_error: Option<&'a str>,
    interval_ms: u128,
}

/// A rule in the table.
struct Row {
    domain: String,
    is_denied: bool,
    created: Option<Moment>,
    /// Where the rule is removed; `None` for a rule of the configuration.
    removal: Option<String>,
}

impl Row {
    fn configured((domain, rule): (Domain, DomainRule)) -> Self {
        Self::of(&domain, rule, None)
    }

    fn stored(StoredDomainRule { domain, rule, created_at }: StoredDomainRule) -> Self {
        Self::of(&domain, rule, Some(created_at))
    }

    fn of(domain: &Domain, rule: DomainRule, created_at: Option<Timestamp>) -> Self {
        Self {
            domain: domain.to_string(),
            is_denied: rule == DomainRule::Deny,
            created: created_at.map(Moment::from),
            removal: created_at.map(|_| format!("{DOMAINS}/{domain}/remove")),
        }
    }
}

/// Shows the page.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let notice = NOTICES.into_iter().find(|(name, _)| query.has(name)).map(|(_, notice)| notice);
    render(&web, &at, StatusCode::OK, notice, &Form::default(), &[]).await
}

/// Redirects to the page, which has the form, when the URL of a submitted form is loaded with GET.
pub(super) async fn redirect_to_page(_: OperatorContext) -> Response {
    see_other(DOMAINS)
}

/// Adds a rule, or replaces the operators' rule of the domain.
pub(super) async fn add(
    State(web): State<Arc<Web>>,
    OperatorForm { at, form: input }: OperatorForm,
) -> Result<Response, Problem> {
    let show_errors =
        async |errors: &[FieldError]| render(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, None, &input, errors).await;
    let (domain, rule) = match parse(&input) {
        Ok(rule) => rule,
        Err(errors) => return show_errors(&errors).await,
    };
    match operator::set_domain_rule(&web.core, &at.operator, domain, rule).await? {
        SetDomainRuleOutcome::Set => Ok(see_other(&format!("{DOMAINS}?saved"))),
        SetDomainRuleOutcome::Unchanged => Ok(see_other(&format!("{DOMAINS}?unchanged"))),
        SetDomainRuleOutcome::TooMany => {
            let max = grouped(MAX_DOMAIN_RULES);
            let message = format!("Operators have {max} rules, which is the maximum. Remove some first.");
            show_errors(&[FieldError { field: "", message }]).await
        }
    }
}

/// Removes a rule of operators.
pub(super) async fn remove(
    State(web): State<Arc<Web>>,
    Path(domain): Path<String>,
    OperatorForm { at, .. }: OperatorForm,
) -> Result<Response, Problem> {
    let domain = Domain::parse(&domain).map_err(|_| unknown())?;
    match operator::remove_domain_rule(&web.core, &at.operator, domain).await? {
        true => Ok(see_other(&format!("{DOMAINS}?removed"))),
        false => Ok(see_other(&format!("{DOMAINS}?gone"))),
    }
}

async fn render(
    web: &Web,
    at: &OperatorContext,
    status: StatusCode,
    notice: Option<&'static str>,
    input: &Form,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let DomainRules { configured, stored } = operator::list_domain_rules(&web.core, &at.operator).await?;
    let has_configured = !configured.is_empty();
    let configured = configured.into_iter().map(Row::configured);
    let mut rules: Vec<Row> = configured.chain(stored.into_iter().map(Row::stored)).collect();
    rules.sort_by(|a, b| a.domain.cmp(&b.domain));
    let rule_error = errors.iter().find(|error| error.field == RULE_FIELD).map(|error| &*error.message);
    let template = DomainsPage {
        layout: at.layout(web, DOMAINS),
        form_token: &at.session.csrf,
        notice,
        errors,
        only_allowed: rules.iter().any(|rule| !rule.is_denied),
        rules,
        has_configured,
        domain: domain_field(input, errors),
        wants_allow: input.get(RULE_FIELD) == DomainRule::Allow.as_str(),
        rule_error,
        interval_ms: DOMAIN_RULES_INTERVAL.as_millis(),
    };
    Ok(page(status, &template))
}

fn domain_field(input: &Form, errors: &[FieldError]) -> Field {
    Field {
        name: DOMAIN_FIELD,
        label: "Domain",
        kind: "text",
        autocomplete: "off",
        max_length: 253,
        hint: "Such as example.com. Its subdomains are included.",
        value: input.get(DOMAIN_FIELD).to_owned(),
        error: None,
    }
    .with_errors(errors)
}

fn parse(input: &Form) -> Result<(Domain, DomainRule), Vec<FieldError>> {
    let name = input.get(DOMAIN_FIELD).trim();
    let domain =
        Domain::parse(name).map_err(|error| FieldError { field: DOMAIN_FIELD, message: domain_message(name, error) });
    let named = input.get(RULE_FIELD);
    let rule = [DomainRule::Deny, DomainRule::Allow].into_iter().find(|rule| rule.as_str() == named);
    let rule = rule.ok_or_else(|| FieldError {
        field: RULE_FIELD,
        message: "Choose whether the domain is denied or allowed.".to_owned(),
    });
    match (domain, rule) {
        (Ok(domain), Ok(rule)) => Ok((domain, rule)),
        (domain, rule) => Err(domain.err().into_iter().chain(rule.err()).collect()),
    }
}

/// What was seen, and what is allowed.
fn domain_message(name: &str, error: DomainError) -> String {
    if name.is_empty() {
        return "Enter a domain such as example.com.".to_owned();
    }
    let mut seen: String = name.chars().take(SEEN_CHARS).collect();
    if seen.len() < name.len() {
        seen.push('…');
    }
    match error {
        DomainError::Malformed => format!(
            "“{seen}” is not a domain. Enter one such as example.com, without a scheme, a path or a wildcard; \
             subdomains are included."
        ),
        DomainError::Address => format!(
            "“{seen}” is an IP address. Enter a domain such as example.com. The setting egress.deny_cidrs is for \
             addresses."
        ),
        DomainError::PublicSuffix => format!(
            "“{seen}” is a public suffix, or has no dot. Enter a domain below a public suffix, such as example.com."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_was_seen_and_what_is_allowed() {
        let parsed = |domain: &str, rule: &str| parse(&Form::from_iter([(DOMAIN_FIELD, domain), (RULE_FIELD, rule)]));
        let expected = (Domain::parse("example.com").unwrap(), DomainRule::Allow);
        assert_eq!(parsed(" Example.COM. ", "allow").unwrap(), expected);
        for (domain, rule, expected) in [
            ("", "deny", &["Enter a domain such as example.com."][..]),
            ("https://example.com/", "deny", &["“https://example.com/” is not a domain."]),
            ("192.0.2.1", "deny", &["“192.0.2.1” is an IP address."]),
            ("co.uk", "deny", &["“co.uk” is a public suffix, or has no dot."]),
            ("*.example.com", "maybe", &["“*.example.com” is not a domain.", "Choose whether"]),
            ("example.com", "", &["Choose whether the domain is denied or allowed."]),
        ] {
            let errors = parsed(domain, rule).unwrap_err();
            let messages: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
            let matches = messages.iter().zip(expected).all(|(message, start)| message.starts_with(start));
            assert!(messages.len() == expected.len() && matches, "{domain} {rule}: {messages:?}");
        }
        let long = "x".repeat(SEEN_CHARS + 1) + ".*";
        let errors = parsed(&long, "deny").unwrap_err();
        assert!(errors[0].message.starts_with(&format!("“{}…” is", "x".repeat(SEEN_CHARS))), "{errors:?}");
    }
}
