//! The first steps of a team.

use grabd_domain::accounts::Email;
use grabd_domain::grabs::Class;
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::accounts::{FirstSteps, InitialTeam, NewUser};

use crate::harness::{NOW, TestDb, on_both};

async fn user(db: &TestDb, text: &str, initial_team: InitialTeam) -> UserId {
    let (id, email) = (UserId(db.id()), Email::parse(text).unwrap());
    let user = NewUser { id, email, password_hash: "former".into(), initial_team, verified: true, now: NOW };
    db.store.accounts().create_user(user).await.unwrap();
    id
}

on_both! {
    async fn first_steps_are_those_of_the_team_and_hidden_by_each_member(db) {
        let team = TeamId(db.id());
        let ada = user(db, "ada@example.com", InitialTeam::New(team, "Ours".into())).await;
        let bob = user(db, "bob@example.com", InitialTeam::Existing(team)).await;
        let eve = user(db, "eve@example.com", InitialTeam::New(TeamId(db.id()), "Hers".into())).await;
        let steps = async |user| db.store.accounts().find_first_steps(team, user).await.unwrap();
        assert_eq!((steps(ada).await, steps(eve).await), (Some(FirstSteps::default()), None));

        let other = db.team(5).await;
        db.store.grabs().create(db.new_grab(other, Class::Sync)).await.unwrap();
        assert_eq!(steps(ada).await, Some(FirstSteps::default()), "the grab is that of another team");
        db.store.accounts().hide_first_steps(team, ada, NOW).await.unwrap();
        assert_eq!((steps(ada).await, steps(bob).await), (None, Some(FirstSteps::default())));
        // Strangers change nothing.
        db.store.accounts().hide_first_steps(team, eve, NOW).await.unwrap();
        assert!(steps(bob).await.is_some());
    }
}
