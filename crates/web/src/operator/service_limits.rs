//! `/operator/limits`: the limits and retention periods of the service, which are read-only here.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::domains::DomainRule;
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::teams::TEAMS;
use grabd_engine::operator::{self, LimitSettings, MAX_DOMAIN_RULES, ServiceLimits};
use http::StatusCode;

use super::navigation::LIMITS;
use crate::extract::OperatorContext;
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

const DAY_S: u64 = 24 * 60 * 60;
/// The value of a limit against strangers in a service without any.
const NO_STRANGERS: &str = "Off: nobody can sign up or buy credits (abuse.strangers)";

#[derive(Template)]
#[template(path = "operator_limits.html")]
struct LimitsPage {
    layout: Layout,
    sections: [Section; 3],
}

/// Limits that belong together.
struct Section {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    rows: Vec<Row>,
}

/// A limit in the table.
struct Row {
    name: &'static str,
    value: String,
    /// The key in the configuration. `None`: it cannot be configured.
    key: Option<&'static str>,
}

/// Shows the page.
pub(super) async fn show(State(web): State<Arc<Web>>, at: OperatorContext) -> Result<Response, Problem> {
    let limits = operator::service_limits(&web.core, &at.operator);
    let sections = [team_section(&limits.settings), account_section(&limits), retention_section(&limits)];
    Ok(page(StatusCode::OK, &LimitsPage { layout: at.layout(&web, LIMITS), sections }))
}

fn team_section(settings: &LimitSettings) -> Section {
    // Only budgets of failed renders, which are not among these, depend on payments.
    let of = |limit| grouped(settings.of(limit, true));
    let stored = settings.retention.team_megabytes.map_or_else(|| "Not limited".to_owned(), megabytes);
    let rows = vec![
        Row::of(
            "Requests in one environment",
            format!("{} per minute", of(TeamLimit::RequestsPerMinute)),
            "limits.requests_per_minute",
        ),
        Row::of("Open asynchronous captures", of(TeamLimit::AsyncQueue), "limits.async_queue"),
        Row::of("Size of the images of live captures", stored, "retention.team_megabytes"),
        Row::fixed("Active API keys", of(TeamLimit::Keys)),
        Row::fixed("Webhook endpoints in one environment", of(TeamLimit::Webhooks)),
        Row::fixed("Members", of(TeamLimit::Members)),
        Row::fixed("Open invitations", of(TeamLimit::Invitations)),
        Row::fixed("Invitations sent by e-mail", format!("{} per day", of(TeamLimit::InvitationsPerDay))),
    ];
    Section {
        id: "teams",
        title: "Limits of a team",
        about: "The page of a team shows which of its limits are overridden, and has a form to change them.",
        rows,
    }
}

fn account_section(limits: &ServiceLimits) -> Section {
    let abuse = &limits.settings.abuse;
    let domains = |rule| {
        let of_rule = limits.domains.iter().filter(|(_, configured)| *configured == rule);
        grouped(of_rule.count().try_into().unwrap_or(u64::MAX))
    };
    let retention = &limits.settings.retention;
    let against_strangers = |value: String| if abuse.has_strangers { value } else { NO_STRANGERS.to_owned() };
    let failed = |seconds: u32| against_strangers(format!("{} seconds per minute", grouped(seconds.into())));
    let size = |limit: Option<u64>| limit.map_or_else(|| "Not limited".to_owned(), megabytes);
    let rows = vec![
        Row::of(
            "Rendering without an image, for an account that has paid",
            failed(abuse.failed_seconds_per_minute),
            "abuse.failed_seconds_per_minute",
        ),
        Row::of(
            "Rendering without an image, for an account that never paid",
            failed(abuse.failed_seconds_per_minute_unpaid),
            "abuse.failed_seconds_per_minute_unpaid",
        ),
        Row::of(
            "Slots kept for accounts that have paid",
            against_strangers(format!("{} % of all slots", abuse.paid_slots_percent)),
            "abuse.paid_slots_percent",
        ),
        Row::of(
            "Everything of an account that never paid, but its test captures",
            against_strangers(size(retention.unpaid_megabytes)),
            "retention.unpaid_megabytes",
        ),
        Row::of(
            "Test captures of an account",
            against_strangers(size(retention.test_megabytes)),
            "retention.test_megabytes",
        ),
        Row::of(
            "What an account stores without a credit, in one environment",
            size(retention.uncharged_megabytes),
            "retention.uncharged_megabytes",
        ),
        Row::of("Denied domains in the configuration", domains(DomainRule::Deny), "abuse.deny_domains"),
        Row::of("Allowed domains in the configuration", domains(DomainRule::Allow), "abuse.allow_domains"),
        Row::fixed("Domain rules of operators", format!("at most {}", grouped(MAX_DOMAIN_RULES))),
        Row::of("Size of an image file", megabytes(limits.image_max_bytes >> 20), "capture.image_max_megabytes"),
        Row::fixed("Teams of a person who creates another", grouped(TEAMS)),
        Row::of(
            "Apps that one address registers",
            format!("{} per hour", grouped(limits.registrations_per_hour.into())),
            "oauth.registrations_per_hour",
        ),
        Row::of(
            "Registered apps that nobody has authorized",
            grouped(limits.unused_clients.into()),
            "oauth.unused_clients",
        ),
    ];
    Section {
        id: "service",
        title: "Limits of the service",
        about: "An account is all teams with the same first owner.",
        rows,
    }
}

fn retention_section(limits: &ServiceLimits) -> Section {
    let retention = &limits.settings.retention;
    let or_never = |kept: Option<Duration>| kept.map_or_else(|| "Not deleted".to_owned(), days);
    let unverified = match limits.sends_mail {
        true => or_never(retention.unverified),
        false => "Not deleted, because no mail server is configured".to_owned(),
    };
    let free = match retention.min_free_percent {
        0 => "No minimum".to_owned(),
        percent => format!("{percent} %, and at least 1 GiB"),
    };
    let rows = vec![
        Row::of("Images of live captures", or_never(retention.images), "retention.images_days"),
        Row::of("Live captures with their images", or_never(retention.grabs), "retention.grabs_days"),
        Row::of("Test captures", or_never(retention.test_grabs), "retention.test_grabs_days"),
        Row::of("Live captures that failed", or_never(retention.failed_grabs), "retention.failed_grabs_days"),
        Row::of("Accounts that were never verified or used", unverified, "retention.unverified_days"),
        Row::of("Entries of the audit trail", days(limits.audit_retention), "audit.retention_days"),
        Row::of("Free space on the disk of the images", free, "retention.min_free_percent"),
    ];
    Section {
        id: "retention",
        title: "Retention and disk space",
        about: "A period is the time until something is deleted. That of a capture begins when the capture ends. With \
                less free space, captures with test keys and of accounts that never paid are refused, with less than three \
                quarters of it those of the largest accounts, and with less than half of it all.",
        rows,
    }
}

impl Row {
    const fn of(name: &'static str, value: String, key: &'static str) -> Self {
        Self { name, value, key: Some(key) }
    }

    const fn fixed(name: &'static str, value: String) -> Self {
        Self { name, value, key: None }
    }
}

fn megabytes(megabytes: u64) -> String {
    format!("{} MB", grouped(megabytes))
}

fn days(period: Duration) -> String {
    match period.as_secs() / DAY_S {
        1 => "1 day".to_owned(),
        days => format!("{} days", grouped(days)),
    }
}

#[cfg(test)]
mod tests {
    use grabd_engine::{Retention, admission};

    use super::*;

    /// The rows with these settings, as `name: value (key)`.
    fn rows(retention: Retention, sends_mail: bool, has_strangers: bool) -> Vec<String> {
        let abuse = admission::Settings {
            has_strangers,
            failed_seconds_per_minute: 60,
            failed_seconds_per_minute_unpaid: 20,
            paid_slots_percent: 25,
        };
        let settings = LimitSettings { requests_per_minute: 1200, async_queue: 50, abuse, retention };
        let limits = ServiceLimits {
            settings,
            domains: Vec::new(),
            image_max_bytes: 32 << 20,
            registrations_per_hour: 20,
            unused_clients: 1000,
            audit_retention: Duration::from_secs(400 * DAY_S),
            sends_mail,
        };
        let sections = [team_section(&settings), account_section(&limits), retention_section(&limits)];
        let rows = sections.into_iter().flat_map(|section| section.rows);
        rows.map(|row| format!("{}: {} ({})", row.name, row.value, row.key.unwrap_or("none"))).collect()
    }

    #[test]
    fn values_have_units_and_absent_ones_say_what_happens() {
        let all = rows(Retention::default(), true, true);
        for expected in [
            "Requests in one environment: 1,200 per minute (limits.requests_per_minute)",
            "Size of the images of live captures: Not limited (retention.team_megabytes)",
            "Active API keys: 100 (none)",
            "Slots kept for accounts that have paid: 25 % of all slots (abuse.paid_slots_percent)",
            "Everything of an account that never paid, but its test captures: Not limited (retention.unpaid_megabytes)",
            "Size of an image file: 32 MB (capture.image_max_megabytes)",
            "Live captures with their images: Not deleted (retention.grabs_days)",
            "Accounts that were never verified or used: Not deleted (retention.unverified_days)",
            "Entries of the audit trail: 400 days (audit.retention_days)",
            "Free space on the disk of the images: No minimum (retention.min_free_percent)",
        ] {
            assert!(all.iter().any(|row| row == expected), "{expected}: {all:#?}");
        }
        let kept = |days: u64| Some(Duration::from_secs(days * DAY_S));
        let retention = Retention {
            images: kept(1),
            grabs: kept(1000),
            test_grabs: kept(7),
            unverified: kept(30),
            failed_grabs: kept(30),
            team_megabytes: Some(5000),
            test_megabytes: Some(100),
            unpaid_megabytes: Some(200),
            uncharged_megabytes: Some(5000),
            min_free_percent: 5,
        };
        let all = rows(retention, false, true);
        for expected in [
            "Size of the images of live captures: 5,000 MB (retention.team_megabytes)",
            "Images of live captures: 1 day (retention.images_days)",
            "Live captures with their images: 1,000 days (retention.grabs_days)",
            "Test captures: 7 days (retention.test_grabs_days)",
            "Live captures that failed: 30 days (retention.failed_grabs_days)",
            "Test captures of an account: 100 MB (retention.test_megabytes)",
            "What an account stores without a credit, in one environment: 5,000 MB (retention.uncharged_megabytes)",
            "Free space on the disk of the images: 5 %, and at least 1 GiB (retention.min_free_percent)",
        ] {
            assert!(all.iter().any(|row| row == expected), "{expected}: {all:#?}");
        }
        assert!(all.iter().any(|row| row.contains("because no mail server is configured")), "{all:#?}");
        // Without strangers, only what limits everybody remains.
        let all = rows(retention, false, false);
        assert_eq!(all.iter().filter(|row| row.contains(": Off: nobody can sign up")).count(), 5, "{all:#?}");
        assert!(all.iter().any(|row| row.starts_with("What an account stores without a credit")), "{all:#?}");
    }
}
