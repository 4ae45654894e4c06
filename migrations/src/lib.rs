//! The schema of both databases, one file per migration step.
//!
//! To change the schema, add `mNNNN_what.rs` and list it in [`Migrator`]. The previous release must be able to run on
//! the new schema: widen first, narrow in a later release. Where that is not possible, list the step as
//! [`FormerVersion::MustStop`]. A released step is never edited.
//!
//! *Invariant:* this crate uses no entity and no domain type. A released step must not change its effect when other
//! code changes.

use sea_orm_migration::prelude::*;

mod m0001_initial;
mod m0003_retention;
mod m0004_admission;
mod m0005_verified_people;
mod m0006_operations;
mod m0007_job_secrets;
mod m0010_links;
mod m0011_files;
mod m0012_keys;
mod m0013_erasure;
mod m0014_second_factor;
mod m0015_team_limits;
mod m0016_passkeys;
mod m0017_image_places;
mod m0018_nodes;
mod m0019_rate_cells;
mod m0020_changed_event;
mod m0021_node_load;
mod m0022_onboarding;
mod m0023_low_balance;
mod m0025_known_secrets;
mod m0026_app_scopes;
mod m0028_background_queues;
mod m0029_stored_bytes;
mod m0030_device_requests;
mod m0031_requests_and_alerts;
mod m0032_operator_lists;
mod m0033_payment_receipts;
mod m0034_grab_creators;
mod m0035_roles;
mod m0036_monitors;
mod m0037_sites;
mod m0038_evidence_keys;
mod m0039_identity_keys;
mod m0040_proxies;

/// All steps, in the order they are applied.
#[derive(Debug)]
pub struct Migrator;

/// The name and the source text of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The name under which the step is recorded as applied.
    pub name: &'static str,
    /// Its source text, whose checksum shows whether an applied step was edited later.
    pub text: &'static str,
    /// What it means for processes of the version before it.
    pub former_version: FormerVersion,
}

/// Whether processes of the version before a step may run on the schema after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FormerVersion {
    /// They continue, until they are replaced. They cannot start again.
    MayContinue,
    /// They must end before.
    MustStop,
}

/// Lists the steps once, so that none is applied without its source being known.
macro_rules! steps {
    ($($step:ident: $former:ident),+ $(,)?) => {
        #[async_trait::async_trait]
        impl MigratorTrait for Migrator {
            fn migrations() -> Vec<Box<dyn MigrationTrait>> {
                vec![$(Box::new($step::Migration)),+]
            }
        }

        impl Migrator {
            /// The sources of all steps, in the order they are applied.
            pub const SOURCES: &[Source] = &[$(Source {
                name: stringify!($step),
                text: include_str!(concat!(stringify!($step), ".rs")),
                former_version: FormerVersion::$former,
            }),+];
        }
    };
}

// Several processes can use one database since `m0018_nodes`, so nobody needs the steps up to it to be gradual.
steps![
    m0001_initial: MustStop,
    m0003_retention: MustStop,
    m0004_admission: MustStop,
    m0005_verified_people: MustStop,
    m0006_operations: MustStop,
    m0007_job_secrets: MustStop,
    m0010_links: MustStop,
    m0011_files: MustStop,
    m0012_keys: MustStop,
    m0013_erasure: MustStop,
    m0014_second_factor: MustStop,
    m0015_team_limits: MustStop,
    m0016_passkeys: MustStop,
    m0017_image_places: MustStop,
    m0018_nodes: MustStop,
    m0019_rate_cells: MayContinue,
    m0020_changed_event: MayContinue,
    m0021_node_load: MayContinue,
    m0022_onboarding: MayContinue,
    m0023_low_balance: MayContinue,
    m0025_known_secrets: MayContinue,
    m0026_app_scopes: MayContinue,
    m0028_background_queues: MayContinue,
    m0029_stored_bytes: MayContinue,
    m0030_device_requests: MayContinue,
    m0031_requests_and_alerts: MayContinue,
    m0032_operator_lists: MayContinue,
    m0033_payment_receipts: MayContinue,
    m0034_grab_creators: MayContinue,
    m0035_roles: MayContinue,
    m0036_monitors: MayContinue,
    m0037_sites: MayContinue,
    m0038_evidence_keys: MayContinue,
    m0039_identity_keys: MayContinue,
    m0040_proxies: MayContinue,
];
