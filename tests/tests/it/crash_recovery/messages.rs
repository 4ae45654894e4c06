//! Checks the webhooks that the teams received.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::crash_test::CrashTest;

/// The first message is refused, so that it must be repeated.
const REFUSED: [u16; 1] = [500];

impl CrashTest {
    /// Registers a webhook for every team, at a path of its own.
    pub(crate) async fn register_endpoints(&self) -> Result<()> {
        for (number, team) in self.teams.iter().enumerate() {
            let body = json!({ "url": format!("http://{}/{number}", self.receiver.address()) }).to_string();
            let (status, _, answer) = self
                .json(|client, base| {
                    let request = client.post(format!("{base}/webhooks")).bearer_auth(&team.key);
                    request.header(CONTENT_TYPE, "application/json").body(body.clone())
                })
                .await?;
            ensure!(status == 201, "{status} {answer}");
        }
        self.receiver.respond_with(&REFUSED);
        Ok(())
    }

    /// Checks that each end was delivered to its team with the right event, that repeated messages are identical, and
    /// that nothing else was delivered. `ends` are path, grab and event.
    pub(crate) fn check_messages(&self, ends: &BTreeSet<(String, String, &'static str)>) -> Result<()> {
        let mut delivered = BTreeSet::new();
        let mut messages = BTreeMap::new();
        for received in self.receiver.received() {
            let message = received.json()?;
            let (grab, event) = (message["data"]["id"].as_str(), message["type"].as_str());
            let (grab, event) = (grab.context("a grab")?.to_owned(), event.context("an event")?);
            let known = ends.iter().find(|end| end.0 == received.path && end.1 == grab && end.2 == event);
            ensure!(known.is_some(), "unexpected message: {received:?}");
            delivered.extend(known);
            let [id, ..] = &received.signature_headers;
            let before = messages.insert(grab, (id.clone(), received.body.clone()));
            ensure!(
                before.as_ref().is_none_or(|before| before.0 == *id && before.1 == received.body),
                "two messages for one end: {before:?} and {received:?}"
            );
        }
        let missing: Vec<_> = ends.iter().filter(|end| !delivered.contains(end)).collect();
        ensure!(missing.is_empty(), "ends without a message: {missing:?}");
        println!("{} messages of {} ends", self.receiver.received().len(), ends.len());
        Ok(())
    }
}
