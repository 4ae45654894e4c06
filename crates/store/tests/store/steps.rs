//! Applied migration steps are compared with those of the program.

use grabd_store::Error;

use crate::harness::{TestDb, on_both};

on_both! {
    async fn database_of_a_newer_version_is_refused(db) {
        db.execute_raw("INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_future', 1)").await.unwrap();
        assert_newer(db, "a later version").await;
        let version = "INSERT INTO schema_step (name, checksum, version) VALUES ('m9999_future', '00', '9.9.9')";
        db.execute_raw(version).await.unwrap();
        assert_newer(db, "9.9.9").await;
    }

    async fn applied_step_in_another_form_is_refused(db) {
        let edit = "UPDATE schema_step SET checksum = '00', version = '0.0.7' WHERE name = 'm0001_initial'";
        db.execute_raw(edit).await.unwrap();
        let refused = db.store.migrate().await.unwrap_err();
        let Error::EditedStep { step, version, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!((step.as_str(), version.as_str()), ("m0001_initial", "0.0.7"));
        assert!(refused.to_string().contains("use the program that upgraded it"), "{refused}");
        assert!(matches!(db.store.schema_is_current().await, Err(Error::EditedStep { .. })));
    }

    async fn plan_names_the_steps_that_are_not_applied(db) {
        let plan = db.store.plan_migration().await.unwrap();
        assert!(plan.applied > 10 && plan.pending.is_empty(), "{plan:?}");
        for (step, may_continue) in [("m0022_onboarding", true), ("m0018_nodes", false)] {
            db.execute_raw(&format!("DELETE FROM seaql_migrations WHERE version = '{step}'")).await.unwrap();
            let former = plan.applied;
            let plan = db.store.plan_migration().await.unwrap();
            assert!(plan.pending.iter().any(|pending| pending.name == step), "{plan:?}");
            assert_eq!((plan.applied < former, plan.former_may_continue()), (true, may_continue), "{plan:?}");
            assert!(!db.store.schema_is_current().await.unwrap());
        }
    }

    async fn steps_of_versions_without_checksums_are_recorded_once(db) {
        for _ in 0..2 {
            // As if an earlier version, which recorded none, had applied all steps.
            db.execute_raw("DELETE FROM schema_step").await.unwrap();
            db.store.migrate().await.unwrap();
            db.store.migrate().await.unwrap();
        }
        db.execute_raw("UPDATE schema_step SET checksum = '00'").await.unwrap();
        assert!(matches!(db.store.migrate().await, Err(Error::EditedStep { .. })));
    }
}

async fn assert_newer(db: &TestDb, expected: &str) {
    let refused = db.store.migrate().await.unwrap_err();
    let Error::NewerSchema { step, version, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!((step.as_str(), version.as_str()), ("m9999_future", expected));
    assert!(refused.to_string().contains(&format!("use grabd {expected}")), "{refused}");
    assert!(matches!(db.store.schema_is_current().await, Err(Error::NewerSchema { .. })));
}
