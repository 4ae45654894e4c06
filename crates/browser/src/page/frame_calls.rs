//! Calls to the browser about the frames of a page. A frame, or its document, may be gone by the time of a call.

use std::time::Duration;

use chromiumoxide::Command;
use chromiumoxide::cdp::browser_protocol::dom::{BackendNodeId, DescribeNodeParams, ResolveNodeParams};
use chromiumoxide::cdp::browser_protocol::page::{CreateIsolatedWorldParams, GetFrameTreeParams};
use chromiumoxide::cdp::js_protocol::runtime::{EvaluateParams, RemoteObjectId};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::error::CaptureError;
use crate::page::load::watch::World;
use crate::page::tab::Tab;

/// What happens if a frame does not answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnTimeout {
    /// The capture fails.
    Fail,
    /// The frame is left out, like one that is gone.
    Skip,
}

/// How the frames of a page are called.
#[derive(Clone, Copy)]
pub(super) struct FrameCalls<'a> {
    pub(super) tab: &'a Tab,
    /// The session of the process that has the frames. That of the page, unless they are of another site.
    pub(super) session: &'a str,
    /// The name of the isolated worlds. Pages cannot see it.
    pub(super) world_name: &'static str,
    /// The end of all calls.
    pub(super) until: Instant,
    pub(super) on_timeout: OnTimeout,
}

/// A frame and those in it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTree {
    pub(super) frame: FrameInfo,
    #[serde(default)]
    pub(super) child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameInfo {
    pub(super) id: String,
    pub(super) loader_id: String,
    pub(super) url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTreeResult {
    frame_tree: FrameTree,
}

/// What a script or a function returned.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Evaluated<T> {
    result: RemoteValue<T>,
    exception_details: Option<IgnoredAny>,
}

impl<T> Evaluated<T> {
    /// The value. `None` if there is none, or if an exception was thrown, which may come in place of the value.
    pub(super) fn into_value(self) -> Option<T> {
        self.result.value.filter(|_| self.exception_details.is_none())
    }
}

/// A value, or the id of an object in the page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteValue<T> {
    value: Option<T>,
    object_id: Option<RemoteObjectId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedWorld {
    execution_context_id: World,
}

#[derive(Deserialize)]
struct Described {
    node: Node,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    pub(super) backend_node_id: BackendNodeId,
    /// The frame in the node, if it is an element with one.
    pub(super) frame_id: Option<String>,
}

#[derive(Deserialize)]
struct Resolved {
    object: RemoteValue<IgnoredAny>,
}

impl FrameCalls<'_> {
    /// The same calls, which end after `limit` at the latest.
    pub(super) fn within(self, limit: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + limit), ..self }
    }

    /// The frames of the page. `None` if it does not answer.
    pub(super) async fn tree(self) -> Result<Option<FrameTree>, CaptureError> {
        let result: Option<FrameTreeResult> = self.call(GetFrameTreeParams::default()).await?;
        Ok(result.map(|result| result.frame_tree))
    }

    /// The isolated world of a frame, which is created if there is none yet. `None` if the process has no such frame.
    pub(super) async fn world(self, frame: String) -> Result<Option<World>, CaptureError> {
        let create = CreateIsolatedWorldParams {
            world_name: Some(self.world_name.to_owned()),
            ..CreateIsolatedWorldParams::new(frame)
        };
        let created: Option<CreatedWorld> = self.call(create).await?;
        Ok(created.map(|created| created.execution_context_id))
    }

    /// The value of an expression, which is not awaited. `None` if it throws, or if the world is gone.
    pub(super) async fn evaluate<T: DeserializeOwned>(
        self,
        world: World,
        expression: String,
    ) -> Result<Option<T>, CaptureError> {
        let params = EvaluateParams {
            context_id: Some(world),
            return_by_value: Some(true),
            silent: Some(true),
            ..EvaluateParams::new(expression)
        };
        let evaluated: Option<Evaluated<T>> = self.call(params).await?;
        Ok(evaluated.and_then(Evaluated::into_value))
    }

    /// The object that an expression names. `None` if there is none, or if the world is gone.
    pub(super) async fn object(self, world: World, expression: String) -> Result<Option<RemoteObjectId>, CaptureError> {
        let params = EvaluateParams { context_id: Some(world), silent: Some(true), ..EvaluateParams::new(expression) };
        let evaluated: Option<Evaluated<IgnoredAny>> = self.call(params).await?;
        Ok(evaluated.and_then(|evaluated| evaluated.result.object_id))
    }

    /// The node that an object is. `None` if it is gone.
    pub(super) async fn describe(self, object: RemoteObjectId) -> Result<Option<Node>, CaptureError> {
        let describe = DescribeNodeParams { object_id: Some(object), ..DescribeNodeParams::default() };
        let described: Option<Described> = self.call(describe).await?;
        Ok(described.map(|described| described.node))
    }

    /// A node as an object of a world, or of the page's own world if none is given. `None` if it is gone.
    pub(super) async fn resolve(
        self,
        node: BackendNodeId,
        world: Option<World>,
    ) -> Result<Option<RemoteObjectId>, CaptureError> {
        let resolve = ResolveNodeParams {
            backend_node_id: Some(node),
            execution_context_id: world,
            ..ResolveNodeParams::default()
        };
        let resolved: Option<Resolved> = self.call(resolve).await?;
        Ok(resolved.and_then(|resolved| resolved.object.object_id))
    }

    /// Calls the browser. `None` if the frame is gone, or if it does not answer in time and may be left out.
    pub(super) async fn call<C: Command, T: DeserializeOwned>(self, command: C) -> Result<Option<T>, CaptureError> {
        let limit = self.until.saturating_duration_since(Instant::now());
        match self.tab.client.call_as(limit, Some(self.session), command).await {
            Ok(result) => Ok(Some(result)),
            Err(CallError::Closed) => Err(CallError::Closed.into()),
            Err(error @ CallError::Timeout(_)) if self.on_timeout == OnTimeout::Fail => Err(error.into()),
            Err(error) => {
                tracing::debug!(%error, "a frame does not answer");
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exception_is_no_value() {
        let read = |json: &str| serde_json::from_str::<Evaluated<bool>>(json).unwrap().into_value();
        assert_eq!(read(r#"{"result": {"type": "boolean", "value": true}}"#), Some(true));
        assert_eq!(read(r#"{"result": {"type": "undefined"}}"#), None);
        let thrown = r#"{"result": {"type": "boolean", "value": true}, "exceptionDetails": {"text": "Uncaught"}}"#;
        assert_eq!(read(thrown), None);
    }
}
