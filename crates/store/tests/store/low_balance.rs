//! Alerts about low balances: once for each time that the balance falls below the threshold.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::Environment;
use grabd_domain::credits::LotKind;
use grabd_domain::ids::{DeliveryId, EndpointId, TeamId, UserId};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{Creator, Events, Registration};
use grabd_store::accounts::{InitialTeam, NewUser, TeamRuleError};
use grabd_store::grabs::FailureSource;
use grabd_store::low_balance::{LowBalance, LowBalanceReason};
use grabd_store::webhooks::NewEndpoint;

use crate::harness::{NOW, TestDb, completion, failing, on_both};

fn text(alert: &LowBalance, _: DeliveryId, _: Timestamp) -> String {
    format!("{} of {}", alert.credits, alert.below)
}

/// A team of this user. Its threshold is 100, the default.
async fn team_of(db: &TestDb, email: &str, verified: bool) -> (UserId, TeamId) {
    let (id, team) = (UserId(db.id()), TeamId(db.id()));
    let initial_team = InitialTeam::New(team, "A team".into());
    let email = Email::parse(email).unwrap();
    let user = NewUser { id, email, password_hash: String::new(), initial_team, verified, now: NOW };
    db.store.accounts().create_user(user).await.unwrap();
    (id, team)
}

/// Checks all teams in batches of two. Returns the credits and the recipients of the alerts.
async fn check(db: &TestDb, now: Timestamp) -> Vec<(TeamId, u64, Vec<String>)> {
    let (mut alerts, mut after) = (Vec::new(), None);
    loop {
        let (crossed, next) = db.store.credits().crossed_thresholds(after, 2, now).await.unwrap();
        for team in crossed {
            if let Some(alert) = db.store.credits().record_balance(team, now, text).await.unwrap() {
                let recipients = alert.recipients.iter().map(ToString::to_string).collect();
                alerts.push((alert.team, alert.credits, recipients));
            }
        }
        match next {
            Some(_) => after = next,
            None => return alerts,
        }
    }
}

async fn spend(db: &TestDb, team: TeamId) {
    let job = db.leased(team).await;
    db.store.grabs().complete(completion(&job)).await.unwrap().unwrap();
}

async fn listen(db: &TestDb, team: TeamId, events: &[&str]) -> EndpointId {
    let url = TargetUrl::restore("https://example.com/hook").unwrap();
    let registration = Registration { url, events: Events::parse(events).unwrap(), description: String::new() };
    let (id, environment) = (EndpointId(db.id()), Environment::Live);
    let new = NewEndpoint {
        id,
        team,
        environment,
        registration,
        secret: vec![1; 73],
        creator: Creator::Key,
        by: None,
        now: NOW,
    };
    db.store.webhooks().register_endpoint(new).await.unwrap();
    id
}

on_both! {
    async fn alert_is_sent_once_for_each_fall(db) {
        let (_, team) = team_of(db, "ada@example.com", true).await;
        let (_, unverified) = team_of(db, "eve@example.com", false).await;
        let (_, poor) = team_of(db, "bob@example.com", true).await;
        db.grant(poor, LotKind::Prepaid, 99, None).await;
        assert_eq!(check(db, NOW).await, [], "balances that were never higher");
        for team in [team, unverified] {
            db.grant(team, LotKind::Prepaid, 101, None).await;
            spend(db, team).await;
        }
        assert_eq!(check(db, NOW).await, [], "100 is not below 100");
        for team in [team, unverified] {
            spend(db, team).await;
        }
        let mut alerts = check(db, NOW).await;
        alerts.sort_by_key(|(of, ..)| *of != team);
        assert_eq!(alerts, [(team, 99, vec!["ada@example.com".to_owned()]), (unverified, 99, Vec::new())]);
        spend(db, team).await;
        assert_eq!(check(db, NOW).await, [], "once");
        db.grant(team, LotKind::Prepaid, 2, None).await;
        assert_eq!(check(db, NOW).await, [], "it is higher again");
        spend(db, team).await;
        assert_eq!(check(db, NOW).await, [(team, 99, vec!["ada@example.com".to_owned()])]);
    }

    async fn processes_that_check_at_the_same_time_send_one_alert(db) {
        let (_, team) = team_of(db, "ada@example.com", true).await;
        db.grant(team, LotKind::Prepaid, 99, None).await;
        for round in 0..20 {
            db.grant(team, LotKind::Prepaid, 1, None).await;
            check(db, NOW).await;
            spend(db, team).await;
            let alerts = join_all((0..8).map(|_| db.store.credits().record_balance(team, NOW, text))).await;
            assert_eq!(alerts.into_iter().filter_map(Result::unwrap).count(), 1, "round {round}");
        }
    }

    async fn reserved_credits_count_as_unspent_and_expired_ones_do_not(db) {
        let (_, team) = team_of(db, "ada@example.com", true).await;
        db.grant(team, LotKind::Prepaid, 100, None).await;
        check(db, NOW).await;
        let job = db.leased(team).await;
        assert_eq!(check(db, NOW).await, [], "a credit is reserved");
        db.store.grabs().fail(failing(job.grab, FailureSource::Lease(job.token), NOW)).await.unwrap();
        let (_, other) = team_of(db, "bob@example.com", true).await;
        let end = NOW + Duration::from_secs(60);
        db.grant(other, LotKind::Subscription, 100, Some(end)).await;
        check(db, NOW).await;
        assert_eq!(check(db, end).await, [(other, 0, vec!["bob@example.com".to_owned()])]);
    }

    async fn owners_choose_the_threshold(db) {
        let (ada, team) = team_of(db, "ada@example.com", true).await;
        let (bob, _) = team_of(db, "bob@example.com", true).await;
        assert_eq!(db.store.credits().alert_below(team).await.unwrap(), Some(100));
        db.grant(team, LotKind::Prepaid, 50, None).await;
        let refused = db.store.credits().set_alert_below(team, 10, bob, NOW).await.unwrap();
        assert_eq!(refused, Err(TeamRuleError::NotMember));
        db.store.credits().set_alert_below(team, 50, ada, NOW).await.unwrap().unwrap();
        assert_eq!(db.store.credits().alert_below(team).await.unwrap(), Some(50));
        assert_eq!(check(db, NOW).await, []);
        // Below the new threshold already: the owner knows.
        db.store.credits().set_alert_below(team, 60, ada, NOW).await.unwrap().unwrap();
        spend(db, team).await;
        assert_eq!(check(db, NOW).await, []);
        db.store.credits().set_alert_below(team, 49, ada, NOW).await.unwrap().unwrap();
        spend(db, team).await;
        assert_eq!(check(db, NOW).await, [(team, 48, vec!["ada@example.com".to_owned()])]);
        db.store.credits().set_alert_below(team, 0, ada, NOW).await.unwrap().unwrap();
        while db.credits(team).await.0 > 0 {
            spend(db, team).await;
        }
        assert_eq!(check(db, NOW).await, [], "0 means never");
    }

    async fn chosen_members_get_the_alert_instead_of_the_owners(db) {
        let (ada, team) = team_of(db, "ada@example.com", true).await;
        let (bob, _) = team_of(db, "bob@example.com", true).await;
        let (eve, _) = team_of(db, "eve@example.com", true).await;
        for user in [bob, eve] {
            db.store.accounts().add_member(team, user, NOW).await.unwrap();
        }
        db.store.accounts().set_role(team, bob, Role::Billing, ada).await.unwrap().unwrap();
        for (by, users, expected) in [
            (eve, vec![ada], Err(TeamRuleError::NotAllowed)),
            (ada, vec![eve], Err(TeamRuleError::NotFound)),
            (ada, vec![ada, bob, ada, bob], Err(TeamRuleError::LimitReached)),
            (ada, vec![ada], Ok(())),
            (bob, vec![bob], Ok(())),
        ] {
            let set = db.store.credits().set_alert_recipients(team, users.clone(), by).await.unwrap();
            assert_eq!(set, expected, "{users:?}");
        }
        let candidates = db.store.credits().list_alert_candidates(team).await.unwrap();
        let candidates: Vec<_> = candidates.iter().map(|candidate| (candidate.user, candidate.is_chosen)).collect();
        assert_eq!(candidates.len(), 2, "{candidates:?}");
        assert!(candidates.contains(&(ada, false)) && candidates.contains(&(bob, true)), "{candidates:?}");

        db.grant(team, LotKind::Prepaid, 50, None).await;
        db.store.credits().set_alert_below(team, 50, ada, NOW).await.unwrap().unwrap();
        spend(db, team).await;
        assert_eq!(check(db, NOW).await, [(team, 49, vec!["bob@example.com".to_owned()])]);
        // With a role that may not set alerts, bob gets none, also if he gets the former role again.
        for role in [Role::Viewer, Role::Billing] {
            db.store.accounts().set_role(team, bob, role, ada).await.unwrap().unwrap();
        }
        db.store.credits().set_alert_below(team, 49, ada, NOW).await.unwrap().unwrap();
        spend(db, team).await;
        assert_eq!(check(db, NOW).await, [(team, 48, vec!["ada@example.com".to_owned()])]);
    }

    async fn owners_get_one_alert_for_each_percentage_and_webhooks_none(db) {
        let (ada, team) = team_of(db, "ada@example.com", true).await;
        db.store.credits().set_alert_below(team, 1, ada, NOW).await.unwrap().unwrap();
        listen(db, team, &["credits.low"]).await;
        db.grant(team, LotKind::Prepaid, 100, None).await;
        let mut seen = Vec::new();
        for _ in 0..100 {
            // Many checks between two captures.
            for _ in 0..2 {
                let (crossed, _) = db.store.credits().crossed_thresholds(None, 9, NOW).await.unwrap();
                for team in crossed {
                    let alert = db.store.credits().record_balance(team, NOW, text).await.unwrap();
                    seen.extend(alert.map(|alert| (alert.credits, alert.reason)));
                }
            }
            spend(db, team).await;
        }
        assert_eq!(seen, [(50, LowBalanceReason::Percent(50)), (20, LowBalanceReason::Percent(20))]);
        assert!(!db.has_due(NOW).await, "no webhook message");
        // At zero it is below the threshold too, which is one alert.
        let last = db.store.credits().record_balance(team, NOW, text).await.unwrap().unwrap();
        assert_eq!((last.credits, last.reason), (0, LowBalanceReason::Threshold));
        assert_eq!(db.store.credits().record_balance(team, NOW, text).await.unwrap(), None);
        assert!(db.has_due(NOW).await);

        // New credits count from their own number, and several percentages at once are one alert.
        db.grant(team, LotKind::Prepaid, 1000, None).await;
        assert_eq!(check(db, NOW).await, []);
        let spent = db.literal(team.0);
        db.execute_raw(&format!("UPDATE credit_lot SET remaining = 150 WHERE granted = 1000 AND team_id = {spent}"))
            .await
            .unwrap();
        let fallen = db.store.credits().record_balance(team, NOW, text).await.unwrap().unwrap();
        assert_eq!((fallen.credits, fallen.reason), (150, LowBalanceReason::Percent(20)));
        db.execute_raw(&format!("UPDATE credit_lot SET remaining = 1000 WHERE granted = 1000 AND team_id = {spent}"))
            .await
            .unwrap();
    }

    async fn subscribed_webhooks_get_one_message(db) {
        let (_, team) = team_of(db, "ada@example.com", true).await;
        let subscribed = [listen(db, team, &["credits.low"]).await, listen(db, team, &[]).await];
        listen(db, team, &["grab.done"]).await;
        db.grant(team, LotKind::Prepaid, 100, None).await;
        check(db, NOW).await;
        spend(db, team).await;
        check(db, NOW).await;
        let due = db.lease_due(NOW, 9, |_| "composed".to_owned()).await;
        let mut due: Vec<_> = due.into_iter().map(|attempt| (attempt.endpoint, attempt.body)).collect();
        due.sort_by_key(|(endpoint, _)| *endpoint != subscribed[0]);
        assert_eq!(due, subscribed.map(|endpoint| (endpoint, "99 of 100".to_owned())));
    }
}
