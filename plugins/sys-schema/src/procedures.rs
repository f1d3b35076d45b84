//! Reads the definitions of procedures: `-- procedure NAME` begins one.

use plugin_api::SystemProcedure;

const SOURCE: &str = include_str!("procedures.sql");

/// All procedures.
pub(crate) fn all() -> Vec<SystemProcedure> {
    let parts = SOURCE.split("\n-- procedure ").skip(1);
    let procedure = |part: &'static str| {
        let (name, text) = part.split_once('\n')?;
        Some(SystemProcedure { schema: "sys", name, text: text.trim() })
    };
    parts.filter_map(procedure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_creates_the_procedure_that_it_names() {
        let all = all();
        assert_eq!(all.len(), 27);
        for procedure in all {
            let begin = format!("CREATE PROCEDURE {} (", procedure.name);
            assert!(procedure.text.starts_with(&begin), "{}", procedure.name);
            assert!(procedure.text.ends_with("END"), "{}", procedure.name);
        }
    }
}
