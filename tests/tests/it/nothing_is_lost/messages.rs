//! Looks at what the teams were told.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::world::World;

/// The first message is refused, and has to be sent again.
const REFUSED: [u16; 1] = [500];

impl World {
    /// Has every team be told at a path of its own.
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
        self.receiver.answers(&REFUSED);
        Ok(())
    }

    /// Every end that is to be told was told, to its team and as it is; the same thing as often as it takes; and nothing
    /// else was. `ends` are the events by path and grab.
    pub(crate) fn judge_messages(&self, ends: &BTreeSet<(String, String, &'static str)>) -> Result<()> {
        let mut told = BTreeSet::new();
        let mut messages = BTreeMap::new();
        for received in self.receiver.received() {
            let message = received.json()?;
            let (grab, event) = (message["data"]["id"].as_str(), message["type"].as_str());
            let (grab, event) = (grab.context("a grab")?.to_owned(), event.context("an event")?);
            let known = ends.iter().find(|end| end.0 == received.path && end.1 == grab && end.2 == event);
            ensure!(known.is_some(), "a message that is not owed: {received:?}");
            told.extend(known);
            let [id, ..] = &received.signed;
            let before = messages.insert(grab, (id.clone(), received.body.clone()));
            ensure!(
                before.as_ref().is_none_or(|before| before.0 == *id && before.1 == received.body),
                "two messages of one end: {before:?} and {received:?}"
            );
        }
        let untold: Vec<_> = ends.iter().filter(|end| !told.contains(end)).collect();
        ensure!(untold.is_empty(), "ends that nobody was told: {untold:?}");
        println!("{} messages of {} ends", self.receiver.received().len(), ends.len());
        Ok(())
    }
}
