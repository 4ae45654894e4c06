//! Checks which package may depend on which, as `docs/ARCHITECTURE.md` documents.
//!
//! A new package gets a row in [`PACKAGE_IMPORTS`] and in the document. A new dependency across a boundary is a
//! decision: change the row and give the reason in `docs/decisions`. Development dependencies are not restricted,
//! because nothing that ships is built from them.

mod audit;
mod circles;
mod credits;
mod imports;
mod links;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Every package of the workspace, existing or planned, and the workspace packages that it may depend on.
const PACKAGE_IMPORTS: [(&str, &[&str]); 21] = [
    ("grabd-options", &[]),
    ("grabd-api", &["grabd-options"]),
    ("grabd-domain", &["grabd-options"]),
    ("grabd-proto", &["grabd-options"]),
    ("grabd-limiters", &[]),
    ("grabd-memory", &[]),
    ("grabd-pixels", &[]),
    ("grabd-evidence", &[]),
    ("grabd-http", &["grabd-limiters"]),
    ("grabd-migrations", &[]),
    ("grabd-egress", &["grabd-domain"]),
    ("grabd-images", &["grabd-domain"]),
    ("grabd-store", &["grabd-domain", "grabd-migrations"]),
    ("grabd-browser", &["grabd-domain", "grabd-egress", "grabd-memory", "grabd-pixels"]),
    (
        "grabd-engine",
        &[
            "grabd-api",
            "grabd-domain",
            "grabd-egress",
            "grabd-evidence",
            "grabd-images",
            "grabd-limiters",
            "grabd-memory",
            "grabd-pixels",
            "grabd-store",
        ],
    ),
    ("grabd-rpc", &["grabd-domain", "grabd-engine", "grabd-proto"]),
    (
        "grabd-edge",
        &["grabd-api", "grabd-http", "grabd-limiters", "grabd-memory", "grabd-options", "grabd-pixels", "grabd-proto"],
    ),
    ("grabd-web", &["grabd-domain", "grabd-engine", "grabd-http", "grabd-limiters", "grabd-options"]),
    (
        "grabd",
        &[
            "grabd-browser",
            "grabd-domain",
            "grabd-edge",
            "grabd-egress",
            "grabd-engine",
            "grabd-http",
            "grabd-images",
            "grabd-limiters",
            "grabd-memory",
            "grabd-migrations",
            "grabd-proto",
            "grabd-rpc",
            "grabd-store",
            "grabd-web",
        ],
    ),
    ("grab", &["grabd-api", "grabd-evidence", "grabd-options"]),
    // For tests.
    ("grabd-areas", &[]),
];

/// The packages of tests and benchmarks, which may depend on everything because nothing that ships is built from them.
const TEST_PACKAGES: [&str; 2] = ["grabd-tests", "grabd-bench"];

/// External crates that are slow to build or risky to use widely, the packages that may depend on them, and the reason.
const RESTRICTED_CRATES: [(&str, &[&str], &str); 17] = [
    ("sea-orm", &["grabd-store"], "a row never leaves the store"),
    ("sqlx", &["grabd-store"], "a row never leaves the store"),
    ("sea-orm-migration", &["grabd-migrations", "grabd-store"], "only the store runs schema steps"),
    ("chromiumoxide", &["grabd-browser"], "it is the slowest crate of a build"),
    ("hickory-resolver", &["grabd-egress"], "names are resolved behind the guard"),
    (
        "reqwest",
        &["grabd-images", "grab"],
        "outgoing requests of the service pass the guard, except those to the object store",
    ),
    ("object_store", &["grabd-images"], "only the image storage uses the object store"),
    ("async-nats", &["grabd-engine"], "only the bus sends hints, to the operator's NATS server"),
    ("lettre", &["grabd-engine"], "only the mailer sends e-mail, to the operator's mail server"),
    ("webauthn-rs-core", &["grabd-engine"], "passkeys are verified in one place"),
    ("axum", &["grabd-http", "grabd-edge", "grabd-web", "grabd"], "HTTP is an interface; rules do not depend on it"),
    ("tonic", &["grabd-proto", "grabd-rpc", "grabd-edge", "grabd"], "only the gRPC services and their clients use it"),
    ("prost", &["grabd-proto"], "generated types are made in one place"),
    ("resvg", &["grabd-engine"], "only placeholders are rendered from SVG"),
    ("figment", &["grabd"], "only the server reads configuration"),
    ("anyhow", &["grabd", "grab"], "libraries have typed errors"),
    (
        "tokio",
        &[
            "grabd-egress",
            "grabd-images",
            "grabd-limiters",
            "grabd-memory",
            "grabd-store",
            "grabd-browser",
            "grabd-engine",
            "grabd-rpc",
            "grabd-edge",
            "grabd-web",
            "grabd",
            "grab",
        ],
        "pure rules do no input or output",
    ),
];

const DOCUMENT: &str = include_str!("../../../../docs/ARCHITECTURE.md");

fn workspace() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata")
}

/// All packages except tests and benchmarks.
fn shipped_packages(workspace: &Metadata) -> impl Iterator<Item = &Package> {
    workspace.packages.iter().filter(|package| !TEST_PACKAGES.contains(&package.name.as_str()))
}

/// Normal and build dependencies of a package.
fn imports(package: &Package) -> impl Iterator<Item = &str> {
    package.dependencies.iter().filter(|import| import.kind != DependencyKind::Development).map(|it| it.name.as_str())
}

#[test]
fn workspace_dependencies_match_the_table() {
    let workspace = workspace();
    let ours: Vec<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    let mut violations = Vec::new();
    for package in shipped_packages(&workspace) {
        let name = package.name.as_str();
        let Some((_, allowed)) = PACKAGE_IMPORTS.iter().find(|(package, _)| *package == name) else {
            violations.push(format!("{name} has no row in PACKAGE_IMPORTS of tests/tests/it/architecture/mod.rs"));
            continue;
        };
        for import in imports(package).filter(|import| ours.contains(import) && !allowed.contains(import)) {
            violations.push(format!("{name} must not import {import}; allowed: {allowed:?}"));
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn restricted_crates_are_used_only_by_allowed_packages() {
    let workspace = workspace();
    let mut violations = Vec::new();
    for package in shipped_packages(&workspace) {
        let name = package.name.as_str();
        for import in imports(package) {
            if let Some((_, users, reason)) = RESTRICTED_CRATES.iter().find(|(restricted, ..)| *restricted == import)
                && !users.contains(&name)
            {
                violations.push(format!("{name} must not import {import}, because {reason}; allowed in {users:?}"));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn architecture_document_contains_the_same_tables() {
    let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let imports = PACKAGE_IMPORTS.iter().map(|(package, allowed)| match allowed.is_empty() {
        true => format!("| `{package}` | nothing |"),
        false => format!("| `{package}` | {} |", code(allowed)),
    });
    let tests = TEST_PACKAGES.map(|package| format!("| `{package}` | everything |"));
    let restricted =
        RESTRICTED_CRATES.iter().map(|(name, users, reason)| format!("| `{name}` | {} | {reason} |", code(users)));
    let missing: Vec<String> = imports
        .chain(tests)
        .chain(restricted)
        .filter(|row| !DOCUMENT.lines().any(|line| line.starts_with(row)))
        .collect();
    assert!(missing.is_empty(), "docs/ARCHITECTURE.md lacks these rows:\n{}", missing.join("\n"));
}
