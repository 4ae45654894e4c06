//! Which package may import which: the rooms of `docs/ARCHITECTURE.md`, held to their walls.
//!
//! A new package gets a row in [`ROOMS`] and in the document. A new import across a wall is a decision: change the row
//! and say why in `docs/decisions`. Development dependencies are free, since nothing that ships is built from them.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Every package of the workspace, there or planned, and the packages of the workspace that it may import.
const ROOMS: [(&str, &[&str]); 11] = [
    ("grabd-domain", &[]),
    ("grabd-proto", &[]),
    ("grabd-migrations", &[]),
    ("grabd-egress", &["grabd-domain"]),
    ("grabd-store", &["grabd-domain", "grabd-migrations"]),
    ("grabd-browser", &["grabd-domain", "grabd-egress"]),
    ("grabd-engine", &["grabd-domain", "grabd-egress", "grabd-proto", "grabd-store"]),
    ("grabd-edge", &["grabd-proto"]),
    ("grabd-web", &["grabd-domain", "grabd-engine"]),
    (
        "grabd",
        &[
            "grabd-browser",
            "grabd-domain",
            "grabd-edge",
            "grabd-egress",
            "grabd-engine",
            "grabd-migrations",
            "grabd-proto",
            "grabd-store",
            "grabd-web",
        ],
    ),
    ("grab", &[]),
];

/// Nothing that ships is built from the tests, so they may import everything.
const FREE: &str = "grabd-tests";

/// Outside crates that are heavy to build or dangerous to spread, the packages that may import them, and why.
const FENCES: [(&str, &[&str], &str); 14] = [
    ("sea-orm", &["grabd-store"], "a row never leaves the store"),
    ("sqlx", &["grabd-store"], "a row never leaves the store"),
    ("sea-orm-migration", &["grabd-migrations", "grabd-store"], "only the store runs schema steps"),
    ("chromiumoxide", &["grabd-browser"], "it is the slowest crate of a build"),
    ("hickory-resolver", &["grabd-egress"], "names are resolved behind the guard"),
    ("reqwest", &["grab"], "outgoing requests of the service pass the guard"),
    ("lettre", &["grabd-engine"], "letters go one way, to the operator's mail server"),
    ("axum", &["grabd-edge", "grabd-web", "grabd"], "HTTP is a face, not a rule"),
    (
        "tonic",
        &["grabd-proto", "grabd-engine", "grabd-edge", "grabd"],
        "gRPC is spoken by the services and their clients",
    ),
    ("prost", &["grabd-proto"], "generated types are made in one place"),
    ("resvg", &["grabd-engine"], "only placeholders are drawn"),
    ("figment", &["grabd"], "only the server reads configuration"),
    ("anyhow", &["grabd", "grab"], "libraries have errors with names"),
    (
        "tokio",
        &["grabd-egress", "grabd-store", "grabd-browser", "grabd-engine", "grabd-edge", "grabd-web", "grabd", "grab"],
        "what a grab is does not wait",
    ),
];

const DOCUMENT: &str = include_str!("../../../docs/ARCHITECTURE.md");

fn workspace() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo describes its own workspace")
}

/// The packages that have walls.
fn walled(workspace: &Metadata) -> impl Iterator<Item = &Package> {
    workspace.packages.iter().filter(|package| package.name.as_str() != FREE)
}

/// What a package is built from: normal and build dependencies.
fn imports(package: &Package) -> impl Iterator<Item = &str> {
    package.dependencies.iter().filter(|import| import.kind != DependencyKind::Development).map(|it| it.name.as_str())
}

#[test]
fn packages_import_each_other_only_as_the_table_allows() {
    let workspace = workspace();
    let ours: Vec<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    let mut broken = Vec::new();
    for package in walled(&workspace) {
        let name = package.name.as_str();
        let Some((_, allowed)) = ROOMS.iter().find(|(room, _)| *room == name) else {
            broken.push(format!("{name} has no row in ROOMS of tests/tests/architecture.rs"));
            continue;
        };
        for import in imports(package).filter(|import| ours.contains(import) && !allowed.contains(import)) {
            broken.push(format!("{name} must not import {import}; of ours it may import only {allowed:?}"));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn fenced_crates_stay_behind_their_fence() {
    let workspace = workspace();
    let mut broken = Vec::new();
    for package in walled(&workspace) {
        let name = package.name.as_str();
        for import in imports(package) {
            if let Some((_, inside, why)) = FENCES.iter().find(|(fenced, ..)| *fenced == import)
                && !inside.contains(&name)
            {
                broken.push(format!("{name} must not import {import}, because {why}; it belongs to {inside:?}"));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn the_document_shows_the_same_tables() {
    let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let rooms = ROOMS.iter().map(|(room, allowed)| match allowed.is_empty() {
        true => format!("| `{room}` | nothing |"),
        false => format!("| `{room}` | {} |", code(allowed)),
    });
    let free = format!("| `{FREE}` | everything |");
    let fences = FENCES.iter().map(|(fenced, inside, why)| format!("| `{fenced}` | {} | {why} |", code(inside)));
    let missing: Vec<String> =
        rooms.chain([free]).chain(fences).filter(|row| !DOCUMENT.lines().any(|line| line.starts_with(row))).collect();
    assert!(missing.is_empty(), "docs/ARCHITECTURE.md lacks these rows:\n{}", missing.join("\n"));
}
