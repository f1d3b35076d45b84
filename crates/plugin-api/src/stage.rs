//! Stages of statements: the names that the process list, steps of statements and `performance_schema` have for parts of their work.

/// A stage with its name in the process list and its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Name of the step.
    pub step: &'static str,
    /// Name of the event: the reference's where it has such a stage.
    pub event: &'static str,
    /// Whether its work is counted.
    pub has_progress: bool,
}

const fn stage(step: &'static str, event: &'static str, has_progress: bool) -> Stage {
    Stage { step, event, has_progress }
}

/// Building an index, in the reference's words, which its process list does not show.
const IN_PLACE: &str = "alter table (";

impl Stage {
    /// All stages.
    pub const ALL: [Stage; 18] = [
        stage("starting", "stage/sql/starting", false),
        stage("optimizing", "stage/sql/optimizing", false),
        stage("executing", "stage/sql/executing", true),
        stage("waiting for handler commit", "stage/sql/waiting for handler commit", false),
        stage("altering table", "stage/sql/altering table", false),
        stage("copy to tmp table", "stage/sql/copy to tmp table", true),
        stage(
            "alter table (read PK and internal sort)",
            "stage/innodb/alter table (read PK and internal sort)",
            true,
        ),
        stage("alter table (log apply index)", "stage/innodb/alter table (log apply index)", false),
        stage("Backing up", "stage/squall/Backing up", true),
        stage("exporting tables", "stage/squall/exporting tables", true),
        stage("importing tables", "stage/squall/importing tables", true),
        stage("checking table", "stage/squall/checking table", true),
        stage("recovery", "stage/squall/recovery", true),
        stage("Waiting for row lock", "stage/squall/Waiting for row lock", false),
        stage(
            "Waiting for table metadata lock",
            "stage/sql/Waiting for table metadata lock",
            false,
        ),
        stage("Waiting for global read lock", "stage/sql/Waiting for global read lock", false),
        stage("User lock", "stage/sql/User lock", false),
        stage("User sleep", "stage/sql/User sleep", false),
    ];

    /// The stage whose step has this name.
    pub fn of_step(step: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.step == step)
    }

    /// The process list's word for a step.
    pub fn shown_state(step: &'static str) -> &'static str {
        if step.starts_with(IN_PLACE) { "altering table" } else { step }
    }
}
