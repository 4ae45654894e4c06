//! Schemas of request bodies.

use serde_json::json;
use utoipa::openapi::{Object, ObjectBuilder};

use super::super::openapi::parts::text;

/// A proxy to create.
pub(in super::super) fn create_proxy() -> Object {
    let password = "Password. It is never returned, and refused without a user name.";
    members("The proxy to create. Unknown members are ignored.", "User name. It is never returned.", password)
        .required("name")
        .required("url")
        .build()
}

/// Changes of a proxy.
pub(in super::super) fn update_proxy() -> Object {
    let username = "The new user name. Without `password`, the password stays. Empty: the proxy has no user name and password any \
                    more.";
    let password = "The new password. Without `username`, the user name stays.";
    members("The members to change. Unknown members are ignored.", username, password).build()
}

fn members(about: &str, username: &str, password: &str) -> ObjectBuilder {
    let name = text()
        .min_length(Some(1))
        .max_length(Some(60))
        .description(Some("A name, for people. Messages of failed captures have it."))
        .examples([json!("Office in Vienna")]);
    let url = text()
        .max_length(Some(300))
        .pattern(Some("^([hH][tT][tT][pP][sS]?|[sS][oO][cC][kK][sS]5)://[^/?#@]+:[0-9]{1,5}/?$"))
        .description(Some("Where the proxy is: scheme, public host and port, without a user name."))
        .examples([json!("http://proxy.example.com:3128")]);
    let login = |about: &str| text().max_length(Some(255)).description(Some(about.to_owned()));
    ObjectBuilder::new()
        .description(Some(about))
        .property("name", name)
        .property("url", url)
        .property("username", login(username).pattern(Some("^[^:]*$")))
        .property("password", login(password))
}
