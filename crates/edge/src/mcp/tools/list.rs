//! The list of tools, as `tools.json` describes them.

use grabd_options::TABLE;
use rmcp::model::Tool;
use serde_json::Value;

use super::option_schema::option_schema;
use crate::reading::Readable;

pub(super) const TOOLS_JSON: &str = include_str!("tools.json");

/// The tools in the order of their list.
pub(in super::super) struct Tools(pub(super) Vec<Tool>);

impl Tools {
    /// Parses `tools.json`, and adds the capture options, and what can be read, to the arguments of `create_grab`.
    pub(in super::super) fn read() -> Self {
        let mut tools: Vec<Value> = serde_json::from_str(TOOLS_JSON).expect("tools.json is a list");
        let create = tools.iter_mut().find(|tool| tool["name"] == "create_grab").expect("tools.json has create_grab");
        let arguments = &mut create["inputSchema"]["properties"];
        arguments["read"]["items"]["enum"] = Readable::offered().map(Readable::name).collect();
        let of_capture = TABLE.iter().map(|option| (option.name.to_owned(), option_schema(option)));
        let others = std::mem::take(arguments.as_object_mut().expect("the arguments are an object"));
        *arguments = Value::Object(of_capture.chain(others).collect());
        Self(serde_json::from_value(tools.into()).expect("tools.json is a valid list of tools"))
    }

    /// All tools, always in the same order.
    pub(in super::super) fn list(&self) -> Vec<Tool> {
        self.0.clone()
    }

    /// The description of the tool with a name.
    pub(super) fn get(&self, name: &str) -> Option<&Tool> {
        self.0.iter().find(|tool| tool.name == name)
    }
}
